"""R^2 over pairs against its definition."""

import numpy as np
import pytest
from small_forests import NOTIONS, example, forest_of, points

from dforest.methods import scores
from dforest.methods.asked import Asked
from dforest.methods.notions import check_given
from dforest.methods.scores import r_squared
from dforest.run.here import Here


def test_r_squared__is_one_for_the_truth_and_zero_for_the_mean():
    z = np.random.default_rng(0).random(30)
    z[4] = np.nan
    assert r_squared(z, z) == 1
    assert r_squared(z, np.full(30, np.nanmean(z))) == pytest.approx(0)


@pytest.mark.parametrize("z", [[], [2.0, 2.0], [np.nan, np.nan]])
def test_r_squared__of_distances_without_spread_is_nan(z):
    assert np.isnan(r_squared(np.array(z), np.zeros(len(z))))


@pytest.mark.parametrize("notion", NOTIONS)
def test_score__is_r_squared_over_known_pairs_of_different_rows(notion, monkeypatch):
    X = points()
    Z, z = example(notion, X)
    forest = forest_of(notion).fit(X, Z)
    if notion == "precomputed":
        z = z.copy()
        z[3, 9:] = z[9:, 3] = np.nan
        Z = z
    rows, model = np.array([7, 2, 30, *range(10, 25)]), forest._forest
    given, leaves = check_given(notion, Z, 40), model.leaves[rows]
    above = np.triu_indices(len(rows), 1)
    guess = forest.pairwise(X[rows])[above]
    expected = r_squared(z[np.ix_(rows, rows)][above], guess)
    for side in (1_024, 5, 1):
        monkeypatch.setattr(scores, "SIDE", side)
        found = scores.score(Asked(model, leaves), given, Here(2), rows)
        assert found == pytest.approx(expected, abs=1e-6)


def test_score__without_a_known_pair_is_nan():
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    assert np.isnan(forest.score(X, np.where(np.eye(40), 0.0, np.nan)))
    assert np.isnan(forest.score(X[:1], np.zeros((1, 1))))
