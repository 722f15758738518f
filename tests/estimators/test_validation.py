"""Cross-validation that never shows a held-out distance, and permutation importance."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, LeaveOneGroupOut
from small_forests import NOTIONS, example, forest_of, plane, points

from dforest import cross_validate, permutation_importance
from dforest.errors import DataError, SpecError
from dforest.methods.scores import r_squared

FOLDS = [(np.arange(10, 40), np.arange(10)), (np.arange(30), np.arange(30, 40))]


@pytest.mark.parametrize("notion", NOTIONS)
def test_cross_validate__scores_forests_fitted_without_the_held_out_rows(notion):
    X = points()
    Z, z = example(notion, X)
    found = cross_validate(forest_of(notion), X, Z, cv=FOLDS)
    for fold, (train, test) in enumerate(FOLDS):
        inside = z[np.ix_(train, train)]
        if notion in ("precomputed", "pairs", "graph"):
            forest = forest_of().fit(X[train], inside)
        else:
            forest = forest_of(notion).fit(X[train], Z[train])
        above = np.triu_indices(len(test), 1)
        judged = z[np.ix_(test, test)][above]
        expected = r_squared(judged, forest.pairwise(X[test])[above])
        assert found["test_score"][fold] == pytest.approx(expected, abs=1e-5)
        expected = r_squared(z[np.ix_(test, train)], forest.pairwise(X[test], X[train]))
        assert found["seen_score"][fold] == pytest.approx(expected, abs=1e-5)
    assert set(found) == {"test_score", "seen_score", "fit_time", "score_time"}


def test_cross_validate__does_not_see_the_distances_of_held_out_rows():
    X, z = plane()
    train, test = FOLDS[0]
    other = z.copy()
    other[test] = other[:, test] = 1.0
    calm, wild = (cross_validate(forest_of(), X, Z, cv=[(train, test)]) for Z in (z, other))
    assert calm["test_score"] != wild["test_score"]
    shuffled = z.copy()  # distances within the fold move: training must not notice
    shuffled[np.ix_(test, test)] = z[np.ix_(test[::-1], test[::-1])]
    again = cross_validate(forest_of(), X, shuffled, cv=[(train, test)])
    assert again["seen_score"] == calm["seen_score"]


def test_cross_validate__a_number_deals_rows_by_the_seed():
    X, z = plane()
    one, two = (cross_validate(forest_of(), X, z, cv=np.int64(4))["test_score"] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert len(one) == 4
    splitter = cross_validate(forest_of(), X, z, cv=KFold(4, shuffle=True, random_state=0))
    np.testing.assert_array_equal(splitter["test_score"], one)


@pytest.mark.parametrize("cv", [4, LeaveOneGroupOut()])
def test_cross_validate__holds_groups_out_together(cv):
    X, z = plane()
    groups = np.repeat(np.arange(4), 10)
    found = cross_validate(forest_of(), X, z, cv=cv, groups=groups)["test_score"]
    alone = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(4)]
    expected = cross_validate(forest_of(), X, z, cv=alone)["test_score"]
    np.testing.assert_allclose(np.sort(found), np.sort(expected))


@pytest.mark.parametrize("cv", [4, LeaveOneGroupOut()])
def test_cross_validate__refuses_groups_of_another_length(cv):
    X, z = plane()
    with pytest.raises(DataError, match="groups has 39 entries, but X has 40 rows"):
        cross_validate(forest_of(), X, z, cv=cv, groups=np.zeros(39))


@pytest.mark.parametrize("cv", [1, 41, True])
def test_cross_validate__refuses_impossible_numbers_of_folds(cv):
    X, z = plane()
    with pytest.raises(SpecError, match=f"cv={cv}"):
        cross_validate(forest_of(), X, z, cv=cv)


def test_cross_validate__takes_sparse_rows_and_frames():
    X, z = plane()
    plain = cross_validate(forest_of(), X, z, cv=3)["test_score"]
    thin = cross_validate(forest_of(), sparse.csr_matrix(X), z, cv=3)["test_score"]
    np.testing.assert_array_equal(thin, plain)
    names = [f"row{k}" for k in range(40)]
    table, Z = pd.DataFrame(X, names, list("ab")), pd.DataFrame(z, names, names)
    framed = cross_validate(forest_of(), table, Z.iloc[::-1], cv=3)["test_score"]
    np.testing.assert_array_equal(framed, plain)


def test_permutation_importance__is_the_fall_of_the_score():
    X, z = plane()
    X = np.c_[X, np.random.default_rng(1).random(40)]
    forest = forest_of(n_estimators=20, max_features=None).fit(X, z)
    found = permutation_importance(forest, X, z, n_repeats=3, random_state=0)
    assert found.importances.shape == (3, 3)
    np.testing.assert_allclose(found.importances_mean, found.importances.mean(axis=1))
    assert found.importances_mean[:2].min() > 5 * abs(found.importances_mean[2])


def test_permutation_importance__of_a_feature_that_is_constant_is_zero():
    X, z = plane()
    X = np.c_[X, np.ones(40)]
    forest = forest_of().fit(X, z)
    found = permutation_importance(forest, sparse.csr_array(X), z, max_rows=20, random_state=0)
    np.testing.assert_array_equal(found.importances[2], 0)
    again = permutation_importance(forest, X, z, max_rows=20, random_state=0)
    np.testing.assert_array_equal(found.importances, again.importances)


def test_permutation_importance__takes_named_features_without_a_warning():
    X, z = plane()
    table = pd.DataFrame(X, columns=["east", "north"])
    forest = forest_of().fit(table, z)
    permutation_importance(forest, table, z, n_repeats=1, random_state=0)
    with pytest.raises(DataError, match="feature names should match"):
        permutation_importance(forest, table[["north", "east"]], z)


def test_permutation_importance__judges_a_refitted_forest_on_what_it_says_now():
    X = points()
    forest = forest_of("absolute").fit(X, X[:, 0])
    graph = example("graph", X)[0]
    forest.refit_leaves(X, graph)
    found = permutation_importance(forest, X, graph, n_repeats=1, random_state=0)
    assert np.isfinite(found.importances).all()
