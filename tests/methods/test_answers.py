"""Predictions of whole forests against the slow twin of equations (2) and (3)."""

import naive
import numpy as np
import pytest
from small_forests import NOTIONS, bags, example, forest_of, points, slow_twin

from dforest import Pairs
from dforest.errors import SpecError
from dforest.methods import answers
from dforest.methods import asked as asked_module

CHOICES = [
    {},
    {"weighting": "kernel", "leaf_rows": "out_of_bag", "max_samples": 0.6},
    {"self_pairs": False, "bootstrap": False, "max_samples": 0.7},
    {"weighting": "kernel", "leaf_rows": "all", "self_pairs": False},
]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(map(str, choice.values())))
@pytest.mark.parametrize("notion", NOTIONS)
def test_pairwise__is_the_mean_over_trees_of_their_leaf_tables(notion, choice):
    X, new = points(), points(12, seed=9)
    Z, z = example(notion, X)
    forest = forest_of(notion, **choice).fit(X, Z)
    twin = slow_twin(forest, X, z)
    expected = naive.forest_pairwise(*twin, new, X, forest.weighting)
    np.testing.assert_allclose(forest.pairwise(new, X), expected, atol=1e-6)
    np.testing.assert_allclose(forest.paired(new, X[:12]), np.diag(expected), atol=1e-6)
    assert (forest.pairwise(X) == forest.pairwise(X).T).all()


@pytest.mark.parametrize("notion", NOTIONS)
def test_fallbacks__are_the_pairs_of_leaves_without_a_known_z(notion):
    X = points()
    Z, z = example(notion, X)
    options = {"leaf_rows": "out_of_bag", "self_pairs": False, "min_samples_leaf": 1}
    forest = forest_of(notion, **options).fit(X, Z)
    tables = slow_twin(forest, X, z)[1]
    expected = [(np.triu(np.ones_like(t.counts)) * (t.counts == 0)).sum() for t in tables]
    assert min(expected) > 0
    np.testing.assert_array_equal(forest._forest.fallbacks, expected)
    assert forest.n_fallback_ == sum(expected)


def test_pairwise__spread_is_the_standard_deviation_over_trees():
    X = points()
    Z, z = example("precomputed", X)
    forest = forest_of().fit(X, Z)
    trees, tables = slow_twin(forest, X, z)
    alone = [naive.forest_pairwise([a], [b], X, X) for a, b in zip(trees, tables)]
    mean, std = forest.pairwise(X, return_std=True)
    np.testing.assert_allclose(mean, np.mean(alone, axis=0), atol=1e-6)
    np.testing.assert_allclose(std, np.std(alone, axis=0), atol=1e-5)


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("trees", ["both", "either"])
def test_oob_pairwise__asks_only_trees_that_did_not_draw_the_rows(trees, weighting):
    X = points()
    Z, z = example("precomputed", X)
    forest = forest_of(weighting=weighting).fit(X, Z)
    voting = naive.oob_voting(bags(forest), trees)
    expected = naive.forest_pairwise(*slow_twin(forest, X, z), X, X, weighting, voting)
    found = forest.oob_pairwise(trees=trees)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.isnan(found).any() or trees == "either"
    rows = np.array([7, 3, 30])
    np.testing.assert_array_equal(forest.oob_pairwise(rows, trees=trees), found[np.ix_(rows, rows)])
    mask = np.isin(np.arange(40), rows)
    chosen = found[np.ix_(mask, mask)]
    np.testing.assert_array_equal(forest.oob_pairwise(mask, trees=trees), chosen)


def test_pairwise__a_tree_that_knows_no_distance_abstains():
    X = points()
    few = Pairs([0, 5], [1, 9], [1.0, 3.0])
    forest = forest_of("pairs", n_estimators=30, max_samples=10).fit(X, few)
    assert any(table.known[-1] == 0 for table in forest._forest.tables)  # of all its pairs
    found = forest.pairwise(X)
    assert np.isfinite(found).all()
    assert found.min() >= 1 - 1e-9
    assert found.max() <= 3 + 1e-9
    np.testing.assert_allclose(forest.paired(X, X), np.diag(found))


@pytest.mark.parametrize("weighting", ["tree", "kernel"])
@pytest.mark.parametrize("notion", NOTIONS)
def test_answers__have_the_same_bits_in_blocks_of_any_size(notion, weighting, monkeypatch):
    X, new = points(), points(9, seed=3)
    forest = forest_of(notion, weighting=weighting).fit(X, example(notion, X)[0])

    def asked():
        yield from forest.pairwise(X, return_std=True)
        yield from forest.pairwise(new, X, return_std=True)
        yield from (forest.oob_pairwise(trees=trees) for trees in ("both", "either"))
        yield from forest.kneighbors(new, 4)
        yield from forest.kneighbors(n_neighbors=4)
        yield forest.paired(new, X[:9])

    whole = list(asked())
    for rows, pairs, threads in ((7, 40, 1), (1, 1, 1), (1_000, 17, 2), (3, 1_000, 2)):
        monkeypatch.setattr(asked_module, "ROWS", rows)
        monkeypatch.setattr(asked_module, "PAIRS", pairs)
        forest.set_params(n_jobs=threads)
        for one, other in zip(asked(), whole, strict=True):
            np.testing.assert_array_equal(one, other)


def test_pairwise__of_the_same_rows_equals_that_of_two_sets(monkeypatch):
    monkeypatch.setattr(asked_module, "ROWS", 16)
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    for one, two in zip(
        forest.pairwise(X, return_std=True), forest.pairwise(X, X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_pairwise__that_does_not_fit_into_memory_is_refused_before_rows_are_routed(monkeypatch):
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    monkeypatch.setattr(answers, "memory_bytes", lambda: 2 * 8 * 40 * 40)
    assert forest.pairwise(X).shape == (40, 40)
    monkeypatch.setattr(answers, "apply", None)
    size = "all 41 x 40 distances take 0.00 GiB"
    with pytest.raises(SpecError, match=f"{size}.*give out=PATH, or ask for kneighbors"):
        forest.pairwise(np.concatenate([X, X[:1]]), X)
    with pytest.raises(SpecError, match="all 40 x 40"):
        forest.pairwise(X, return_std=True)
    monkeypatch.setattr(answers, "memory_bytes", lambda: 8 * 40 * 40)
    with pytest.raises(SpecError, match="give out=PATH"):
        forest.oob_pairwise()


def test_one_hot__says_which_leaves_rows_share():
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    leaves, hot = forest.apply(X), forest.transform(X)
    assert hot.shape == (40, forest.n_leaves_.sum())
    shared = (leaves[:, None] == leaves).sum(axis=2)
    np.testing.assert_array_equal((hot @ hot.T).toarray(), shared)
    np.testing.assert_array_equal(leaves.max(axis=0) + 1, forest.n_leaves_)


def test_apply__counts_leaves_from_left_to_right():
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    trees, _ = slow_twin(forest, X, example("precomputed", X)[1])
    np.testing.assert_array_equal(forest.apply(X).T, [naive.apply(tree, X) for tree in trees])
    assert forest.apply(X).dtype == np.int32


def test_importances__are_shares_of_the_gains():
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    gains = np.zeros(3)
    for tree in forest._forest.trees:
        for feature, gain in zip(tree.feature, tree.gain):
            gains[feature] += gain if feature >= 0 else 0
    np.testing.assert_allclose(forest.feature_importances_, gains / gains.sum())


def test_importances__of_oblique_trees_sum_to_one_and_find_the_feature():
    X = points(150, 4)
    forest = forest_of("absolute", projections="sparse", n_estimators=20).fit(X, X[:, 2])
    shares = forest.feature_importances_
    assert shares.sum() == pytest.approx(1)
    assert shares.argmax() == 2


def test_importances__are_zero_where_nothing_was_split():
    forest = forest_of("absolute").fit(points(), np.ones(40))
    np.testing.assert_array_equal(forest.feature_importances_, np.zeros(3))
