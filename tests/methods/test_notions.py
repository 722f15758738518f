"""Unknown distances: what a forest makes of matrices with holes, and of a few pairs."""

import numpy as np
import pytest
from small_forests import NOTIONS, bits, example, forest_of, plane, points

from dforest import Pairs
from dforest.errors import DataError, SpecError
from dforest.methods.notions import NOTIONS as TABLE
from dforest.methods.notions import check_given
from dforest.methods.scores import between


def hide(z, how, seed=0):
    """Hide 40 % of the pairs: (n, n) bool, symmetric, without the diagonal."""
    rng, n = np.random.default_rng(seed), len(z)
    if how == "at random":
        hidden = np.triu(rng.random((n, n)) < 0.4, 1)
        return hidden | hidden.T
    group = rng.permutation(n) % 10  # whole blocks of groups: 18 of 45, about 40 %
    a, b = np.triu_indices(10, 1)
    taken = rng.permutation(45)[:18]
    blocks = np.zeros((10, 10), bool)
    blocks[a[taken], b[taken]] = blocks[b[taken], a[taken]] = True
    return blocks[np.ix_(group, group)]


@pytest.mark.parametrize("how", ["at random", "in blocks"])
@pytest.mark.parametrize("form", ["matrix", "pairs"])
def test_unknown_distances__are_learned_from_the_known_ones(form, how):
    X, z = plane(200)
    hidden = hide(z, how)
    assert 0.3 < hidden.mean() < 0.45
    Z = np.where(hidden, np.nan, z)
    if form == "pairs":
        i, j = np.nonzero(np.triu(~hidden))
        Z = Pairs(i, j, z[i, j])
    forest = forest_of(n_estimators=50, max_features=None, n_jobs=2).fit(X, Z)
    found = forest.pairwise(X)
    assert np.isfinite(found).all()
    assert np.corrcoef(found[hidden], z[hidden])[0, 1] > 0.9


def test_pairs__equal_a_matrix_with_nan_elsewhere():
    X = points()
    pairs, z = example("pairs", X)
    pairs = Pairs(pairs.i, pairs.j, np.float32(pairs.z))  # what a matrix holds
    options = {"n_estimators": 20, "leaf_rows": "out_of_bag"}
    listed, whole = (forest_of(**options).fit(X, Z) for Z in (pairs, np.float32(z)))
    for one, other in zip(listed._forest.trees, whole._forest.trees):
        np.testing.assert_array_equal(one.feature, other.feature)
        np.testing.assert_array_equal(one.threshold, other.threshold)
    np.testing.assert_allclose(listed.pairwise(X), whole.pairwise(X), atol=1e-5)
    assert listed.n_fallback_ == whole.n_fallback_


@pytest.mark.parametrize("form", ["matrix", "pairs"])
def test_unknown_distances__a_row_without_any_is_placed_by_its_features(form):
    X, z = plane(60)
    Z = z.copy()
    Z[7] = Z[:, 7] = np.nan
    if form == "pairs":
        i, j = np.nonzero(np.triu(~np.isnan(Z)))
        Z = Pairs(i, j, Z[i, j])
    forest = forest_of(n_estimators=50, max_features=None).fit(X, Z)
    found = forest.pairwise(X)
    assert np.isfinite(found).all()
    assert np.corrcoef(np.delete(found[7], 7), np.delete(z[7], 7))[0, 1] > 0.8


def test_unknown_distances__of_forty_percent_and_a_row_report_their_fallbacks():
    X, z = plane(60)
    Z = np.where(hide(z, "at random"), np.nan, z)
    Z[3] = Z[:, 3] = np.nan
    forest = forest_of(min_samples_leaf=1, self_pairs=False).fit(X, Z)
    assert forest.n_fallback_ > 0
    assert np.isfinite(forest.pairwise(X)).all()
    assert forest.pairwise(X).min() > 0


@pytest.mark.parametrize("notion", NOTIONS)
def test_between__are_the_distances_that_were_given(notion):
    X = points()
    Z, z = example(notion, X)
    given = check_given(notion, Z, 40)
    rows, columns = np.array([3, 1, 39, 8]), np.array([8, 0, 3])
    np.testing.assert_allclose(between(given, rows, columns), z[np.ix_(rows, columns)], atol=1e-6)
    taken = TABLE[notion].take(given, np.array([8, 0, 3, 30]))
    assert taken.n_rows == 4
    inside = np.array([0, 3, 2])
    expected = z[np.ix_([8, 30, 3], [8, 30, 3])]
    np.testing.assert_allclose(between(taken, inside, inside), expected, atol=1e-6)


def test_check_given__takes_what_was_checked_before():
    given = check_given("indicator", ["a", "b"], 2)
    assert check_given("indicator", given, 2) is given
    with pytest.raises(SpecError, match="no 'manhattan'"):
        check_given("manhattan", np.zeros((2, 2)), 2)


def test_identities__indicator_and_half_squared_equal_their_matrices():
    X = points()
    for notion in ("indicator", "half_squared", "absolute", "graph"):
        Z, z = example(notion, X)
        own = forest_of(notion).fit(X, Z)
        matrix = forest_of().fit(X, z)
        np.testing.assert_array_equal(own.apply(X), matrix.apply(X))
        np.testing.assert_allclose(own.pairwise(X), matrix.pairwise(X), atol=1e-5)


def test_pairs__are_checked_against_the_rows():
    with pytest.raises(DataError, match="X has 40 rows"):
        check_given("pairs", Pairs([0], [50], [1.0]), 40)
    assert bits(forest_of().fit(points(), Pairs([0], [1], [1.0], 40)))
