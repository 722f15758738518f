"""Predictions of forests: slow twins, identities, and rows out of bag."""

import numpy as np
import pytest
from scipy import sparse
from small_forests import bags, points
from small_votes import (
    KINDS,
    LEAF_ROWS,
    numbers,
    responses,
    slow_told,
    slow_told_outside,
    told,
    told_outside,
    voting,
)

from dforest.methods import votes
from dforest.run.here import Here


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("leaf_rows", LEAF_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_predict__equals_the_slow_twin(kind, leaf_rows, weighting):
    X, new = points(), np.r_[points(12, seed=3), np.full((1, 3), 99.0)]
    forest = voting(kind, leaf_rows=leaf_rows, weighting=weighting, min_samples_leaf=1)
    forest.fit(X, responses(kind, X))
    np.testing.assert_allclose(told(forest, new), slow_told(forest, kind, X, new), atol=1e-12)


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("leaf_rows", LEAF_ROWS)
@pytest.mark.parametrize("kind", KINDS)
def test_out_of_bag__equals_the_slow_twin(kind, leaf_rows, weighting):
    X = points()
    forest = voting(kind, leaf_rows=leaf_rows, weighting=weighting, min_samples_leaf=1)
    forest.fit(X, responses(kind, X))
    covered = (bags(forest) == 0).any(axis=0)
    assert not covered.all()
    found = told_outside(forest)
    np.testing.assert_array_equal(np.isnan(found).any(axis=1), ~covered)
    np.testing.assert_array_equal(forest.oob_count_, (bags(forest) == 0).sum(axis=0))
    np.testing.assert_allclose(found, slow_told_outside(forest, kind, X), atol=1e-12)


ONE, EIGHT = {"min_samples_leaf": 1}, {"max_depth": 3}


@pytest.mark.parametrize(
    ("kind", "options"),
    [(kind, ONE) for kind in KINDS] + [(kind, EIGHT) for kind in KINDS if kind != "indicator"],
)
def test_forest__equals_the_kernel_forest_where_leaves_hold_as_many_rows(kind, options):
    X, y = np.arange(64.0)[:, None], np.arange(64)  # numbers are cut in the middle
    forest = voting(kind, bootstrap=False, **options).fit(X, y)
    sizes = np.bincount(forest.apply(X)[:, 0])
    assert set(sizes) == {8 if options is EIGHT else 1}
    kernel = voting(kind, bootstrap=False, weighting="kernel", **options).fit(X, y)
    np.testing.assert_allclose(told(forest, X), told(kernel, X), rtol=1e-12)


@pytest.mark.parametrize("leaf_rows", ["in_bag", "all"])
@pytest.mark.parametrize("kind", ["indicator", "half_squared"])
def test_kernel_forest__is_kernel_regression_with_the_connection(kind, leaf_rows):
    X, new = points(), points(12, seed=3)
    forest = voting(kind, weighting="kernel", leaf_rows=leaf_rows, bootstrap=False)
    forest.fit(X, responses(kind, X))
    K = forest.connection(new, X, sparse=False)
    expected = K @ numbers(kind, X) / K.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(told(forest, new), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting", ["tree", "kernel"])
def test_predict__has_the_same_bits_for_any_block_and_thread(kind, weighting, monkeypatch):
    X = points(150)
    forest = voting(kind, weighting=weighting, n_estimators=40).fit(X, responses(kind, X))
    whole = told(forest, X), told_outside(forest)
    for block, threads in ((1, 1), (7, 2), (64, 2)):
        monkeypatch.setattr(votes, "ROW_BLOCK", block)
        np.testing.assert_array_equal(votes.predict(forest._forest, X, Here(threads)), whole[0])
        found = votes.out_of_bag(forest._forest, forest._given, Here(threads))
        np.testing.assert_array_equal(found.value, whole[1])
    monkeypatch.setattr(votes, "TREE_BLOCK", 3)
    np.testing.assert_array_equal(
        votes.out_of_bag(forest._forest, forest._given, Here(1)).value, whole[1]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_predict__of_sparse_rows_equals_dense_ones(kind):
    X = points() * (points(seed=8) > 0)
    forest = voting(kind).fit(X, responses(kind, X))
    np.testing.assert_array_equal(told(forest, X), votes.predict(
        forest._forest, sparse.csr_array(X), Here(1)
    ))  # fmt: skip


def test_row_blocks__cover_all_rows_once():
    for n in (1, 5, 4096, 20_000):
        blocks = votes.row_blocks(n, Here(2))
        assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(n))
        assert max(b.stop - b.start for b in blocks) <= votes.ROW_BLOCK


# Honesty -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf_rows", LEAF_ROWS)
@pytest.mark.parametrize("weighting", ["tree", "kernel"])
def test_coin_flips__are_told_out_of_bag_as_well_as_a_coin_does(leaf_rows, weighting):
    X, coin = np.arange(1000.0)[:, None], np.random.default_rng(0).integers(0, 2, 1000)
    options = {"min_samples_leaf": 1, "n_estimators": 30, "max_bins": None}
    forest = voting(leaf_rows=leaf_rows, weighting=weighting, **options).fit(X, coin)
    assert forest.oob_score_ == pytest.approx(0.5, abs=0.06)
    inside = forest.score(X, coin)
    assert inside > 0.8 or leaf_rows == "out_of_bag"


def test_a_row_alone_in_the_whole_tree__has_nobody_to_tell_it():
    X, y = np.arange(3.0)[:, None], ["a", "b", "c"]
    forest = voting(bootstrap=False, max_samples=2, leaf_rows="out_of_bag").fit(X, y)
    found = forest.oob_proba()
    assert np.isnan(found).all()  # each tree has one voter, who may not vote for itself
    assert forest.oob_count_.sum() == 5
    assert np.isnan(forest.oob_score_)


def test_predictions__of_medians_are_moved_little_by_outliers():
    X = np.repeat(np.arange(4.0), 25)[:, None]
    y = X[:, 0].copy()
    y[::25] = 1e6
    options = {"bootstrap": False, "min_samples_leaf": 25, "max_depth": 2}
    assert abs(voting("absolute", **options).fit(X, y).predict(X) - X[:, 0]).max() < 1e-9
    assert abs(voting("half_squared", **options).fit(X, y).predict(X) - X[:, 0]).min() > 1e3
