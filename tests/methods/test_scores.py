"""R^2 over pairs against its definition."""

import numpy as np
import pytest

from dforest.methods.notions import check_given
from dforest.methods.scores import r_squared, r_squared_within


def test_r_squared__is_one_for_the_truth_and_zero_for_the_mean():
    z = np.random.default_rng(0).random(30)
    z[4] = np.nan
    assert r_squared(z, z) == 1
    assert r_squared(z, np.full(30, np.nanmean(z))) == pytest.approx(0)


@pytest.mark.parametrize("z", [[], [2.0, 2.0], [np.nan, np.nan]])
def test_r_squared__of_distances_without_spread_is_nan(z):
    assert np.isnan(r_squared(np.array(z), np.zeros(len(z))))


def test_r_squared_within__takes_each_pair_once_and_no_row_with_itself():
    y = np.array([0.0, 1.0, 5.0, 2.0])
    given = check_given("absolute", y, 4)
    rows = np.array([2, 0, 3])
    z = np.array([5.0, 3.0, 2.0])
    guess = np.array([[99.0, 4.0, 3.0], [-1.0, 99.0, 1.0], [-1.0, -1.0, 99.0]])
    expected = 1 - (1 + 0 + 1) / ((z - z.mean()) ** 2).sum()
    assert r_squared_within(given, rows, guess) == pytest.approx(expected)
