"""Calibration: known maps are found, certainty is never claimed, rare classes are kept."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from dforest.errors import SpecError
from dforest.methods.calibration import METHODS, calibrate, cross_fitted
from dforest.methods.measures import calibration_error, log_loss


def sharpened(n=4_000, K=3, sharpness=3.0, seed=0):
    """Votes that are over-confident: true posteriors to a power; classes, and the posteriors."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K) * 2, n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(max=K - 1)
    votes = P**sharpness
    return votes / votes.sum(axis=1, keepdims=True), y, P


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("sharpness", [0.5, 3.0])
@pytest.mark.parametrize("method", METHODS)
def test_calibrate__mends_what_is_sharpened(method, sharpness, K):
    votes, y, _ = sharpened(sharpness=sharpness, K=K)
    new, truth, _ = sharpened(sharpness=sharpness, K=K, seed=1)
    found = calibrate(method, votes, y)(new)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert calibration_error(truth, found) < 0.5 * calibration_error(truth, new)
    assert log_loss(truth, found) < log_loss(truth, new)


@pytest.mark.parametrize("sharpness", [0.5, 1.5])
def test_temperature__finds_the_power(sharpness):
    votes, y, P = sharpened(20_000, sharpness=sharpness)
    calibrator = calibrate("temperature", votes, y)
    assert calibrator.arrays["sharpness"][0] == pytest.approx(1 / sharpness, rel=0.08)
    np.testing.assert_allclose(calibrator(votes), P, atol=0.05)


def test_isotonic__is_monotone_and_near_scikit_learns_steps():
    votes, y, _ = sharpened(K=2)
    found = calibrate("isotonic", votes, y)(votes)
    assert (np.diff(found[np.argsort(votes[:, 1]), 1]) >= 0).all()
    theirs = IsotonicRegression().fit(votes[:, 1], y).predict(votes[:, 1])
    assert abs(found[:, 1] - theirs).mean() < 0.01


def test_sigmoid__is_a_logistic_regression_for_each_class():
    votes, y, _ = sharpened(K=2)
    curve = calibrate("sigmoid", votes, y).arrays
    theirs = LogisticRegression(C=1e6).fit(votes[:, 1:], y)
    assert curve["slope"][1] == pytest.approx(theirs.coef_[0, 0], rel=0.02)
    assert curve["intercept"][1] == pytest.approx(theirs.intercept_[0], rel=0.02)


@pytest.mark.parametrize("method", METHODS)
def test_calibrate__never_claims_certainty(method):
    y = np.array([0, 1] * 10)
    found = calibrate(method, np.eye(2)[y], y)(np.eye(2))
    assert 0 < found.min() < 0.1
    assert np.isfinite(np.log(found)).all()


@pytest.mark.parametrize("method", METHODS)
def test_calibrate__keeps_classes_that_no_row_has(method):
    votes, y, _ = sharpened(300, K=3)
    votes = np.c_[votes * 0.9, np.full(300, 0.1)]
    found = calibrate(method, votes, y)(votes)
    assert found.shape == (300, 4)
    assert 0 < found[:, 3].max() < 0.05
    np.testing.assert_array_equal(np.isnan(found), False)


@pytest.mark.parametrize("method", METHODS)
def test_calibrate__of_one_row_or_one_class_is_finite(method):
    one = calibrate(method, np.array([[1.0]]), np.array([0]))
    np.testing.assert_array_equal(one(np.array([[1.0]])), [[1.0]])
    two = calibrate(method, np.array([[0.3, 0.7]]), np.array([1]))(np.array([[0.5, 0.5]]))
    assert np.isfinite(two).all()


@pytest.mark.parametrize("method", METHODS)
def test_calibrate__leaves_out_rows_without_votes(method):
    votes, y, _ = sharpened(200)
    holes = np.r_[votes, np.full((5, 3), np.nan)]
    one, other = calibrate(method, votes, y), calibrate(method, holes, np.r_[y, np.zeros(5, int)])
    np.testing.assert_array_equal(one(votes), other(votes))
    assert np.isnan(other(holes)[200:]).all()
    with pytest.raises(SpecError, match="there are none; set bootstrap=True, max_samples=0.5"):
        calibrate(method, holes[200:], np.zeros(5, int))


def test_calibrate__names_the_methods():
    with pytest.raises(SpecError, match="calibration='platt' is unknown.*'sigmoid', 'isotonic'"):
        calibrate("platt", np.ones((2, 1)), np.zeros(2, int))


@pytest.mark.parametrize("method", METHODS)
def test_cross_fitted__does_not_see_its_own_row(method):
    rng = np.random.default_rng(0)
    votes, y = rng.dirichlet(np.ones(2), 300), rng.integers(0, 2, 300)
    found = cross_fitted(method, votes, y, seed=0)
    other = y.copy()
    other[7] = 1 - y[7]
    assert np.isfinite(found).all()
    changed = np.flatnonzero((cross_fitted(method, votes, other, seed=0) != found).any(axis=1))
    assert 7 not in changed or len(changed) > 200  # another fold may have been drawn
    assert log_loss(y, found) > np.log(2) - 0.02  # in truth, votes tell nothing
    assert log_loss(y, found) > log_loss(y, calibrate(method, votes, y)(votes))


def test_cross_fitted__leaves_nan_where_there_are_no_votes():
    votes, y, _ = sharpened(50)
    votes[[3, 8]] = np.nan
    found = cross_fitted("isotonic", votes, y, seed=0)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found).any(axis=1)), [3, 8])
    alone = np.full((5, 2), np.nan)
    alone[1] = 0.5
    assert np.isnan(cross_fitted("isotonic", alone, np.zeros(5, int), seed=0)).all()
