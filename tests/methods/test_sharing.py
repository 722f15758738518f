"""Connection, weights of votes, proximities: they give back the predictions, and their algebra."""

import numpy as np
import pytest
from small_forests import bags, points
from small_votes import KINDS, LEAF_ROWS, numbers, responses, told, told_outside, voting

from dforest.errors import SpecError
from dforest.methods import sharing


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("leaf_rows", LEAF_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_forest_weights__times_y_are_the_predictions(kind, leaf_rows, weighting):
    X, new = points(), np.r_[points(12, seed=3), np.full((1, 3), 99.0)]
    forest = voting(kind, leaf_rows=leaf_rows, weighting=weighting, min_samples_leaf=1)
    W = forest.fit(X, responses(kind, X)).forest_weights(new)
    assert W.shape == (13, 40)
    assert W.data.min() > 0
    np.testing.assert_allclose(W.sum(axis=1), 1, rtol=1e-12)
    expected = (W @ numbers(kind, X)).reshape(13, -1)
    np.testing.assert_allclose(told(forest, new), expected, atol=1e-12)


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("leaf_rows", LEAF_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_proximity__times_y_are_the_predictions_out_of_bag(kind, leaf_rows, weighting):
    X = points()
    forest = voting(kind, leaf_rows=leaf_rows, weighting=weighting, min_samples_leaf=1)
    P = forest.fit(X, responses(kind, X)).proximity()
    covered = forest.oob_count_ > 0
    np.testing.assert_allclose(P.sum(axis=1), covered, rtol=1e-12)
    assert P.diagonal().max() == 0
    expected = (P @ numbers(kind, X)).reshape(40, -1)
    np.testing.assert_allclose(told_outside(forest)[covered], expected[covered], atol=1e-12)


def test_proximity__is_rf_gap():
    X = points()
    forest = voting(min_samples_leaf=1).fit(X, responses("indicator", X))
    drawn, leaves, P = bags(forest), forest.apply(X), forest.proximity().toarray()
    for i in range(40):
        outside = np.flatnonzero(drawn[:, i] == 0)
        expected = np.zeros(40)
        for t in outside:
            inside = drawn[t] * (leaves[:, t] == leaves[i, t])
            expected += inside / inside.sum() / len(outside)
        np.testing.assert_allclose(P[i], expected, atol=1e-14)
    new = points(5, seed=3)
    assert abs(forest.proximity(new) - forest.forest_weights(new)).max() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_connection__is_the_share_of_trees_with_a_common_leaf(kind):
    X, new = points(), points(12, seed=3)
    forest = voting(kind).fit(X, responses(kind, X))
    ones, others = forest.apply(new), forest.apply(X)
    expected = (ones[:, None] == others).mean(axis=2)
    K = forest.connection(new, X)
    np.testing.assert_array_equal(K.toarray(), expected)
    np.testing.assert_array_equal(forest.connection(new, X, sparse=False), expected)
    assert K.nnz == np.count_nonzero(expected)


def test_connection__is_a_kernel():
    X = points()
    K = voting().fit(X, responses("indicator", X)).connection(X, sparse=False)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), 1)
    assert np.linalg.eigvalsh(K).min() > -1e-12


def test_large__is_refused_before_it_is_made(monkeypatch):
    X = points()
    forest = voting(min_samples_leaf=20).fit(X, responses("indicator", X))
    monkeypatch.setattr(sharing, "memory_bytes", lambda: 10_000)
    for ask in (forest.connection, forest.forest_weights, lambda X: forest.proximity()):
        with pytest.raises(SpecError, match=r"up to 1,600 of 40 x 40 pairs.* ask about fewer rows"):
            ask(X)
    forest.connection(X[:1])
