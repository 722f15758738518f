"""Measures of posteriors against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from dforest.methods.measures import brier, calibration_error, hellinger, log_loss


def made_up(n=400, K=3, seed=0):
    """Classes drawn from their posteriors: (n,), (n, K)."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    return (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(max=K - 1), P


@pytest.mark.parametrize("K", [2, 3, 7])
def test_measures__equal_scikit_learns(K):
    y, P = made_up(K=K)
    assert log_loss(y, P) == pytest.approx(metrics.log_loss(y, P))
    ours, factor = brier(y, P), 2 if K == 2 else 1  # of two classes, scikit-learn looks at one
    theirs = metrics.brier_score_loss(y, P[:, 1] if K == 2 else P)
    assert ours == pytest.approx(factor * theirs)


def test_calibration_error__is_small_for_true_posteriors_and_the_gap_for_a_constant():
    y, P = made_up(20_000)
    assert calibration_error(y, P) < 0.015
    sure = np.eye(3)[P.argmax(axis=1)]
    assert calibration_error(y, sure) == pytest.approx(1 - (P.argmax(axis=1) == y).mean())


def slow_calibration_error(y, P, bins):
    told, right, total = P.max(axis=1), P.argmax(axis=1) == y, 0.0
    for b in range(bins):
        inside = (told >= b / bins) & ((told < (b + 1) / bins) | (b == bins - 1))
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - told[inside].mean())
    return total


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(2, 5), st.integers(1, 20), st.integers(0, 10**6))
def test_calibration_error__equals_its_slow_twin(n, K, bins, seed):
    y, P = made_up(n, K, seed)
    assert calibration_error(y, P, bins) == pytest.approx(slow_calibration_error(y, P, bins))


def test_log_loss__of_the_impossible_is_bounded():
    found = log_loss(np.array([0]), np.array([[0.0, 1.0]]))
    assert found == pytest.approx(-np.log(np.finfo(float).eps))
    assert log_loss(np.array([0]), np.array([[0.0, 1.0]]), floor=0.1) == pytest.approx(np.log(10))


def test_hellinger__as_printed_and_with_the_root():
    P, Q = made_up(seed=1)[1], made_up(seed=2)[1]
    overlap = np.sqrt(P * Q).sum(axis=1)  # the Bhattacharyya coefficient
    np.testing.assert_allclose(hellinger(P, Q), (2 - 2 * overlap) / np.sqrt(2), atol=1e-12)
    np.testing.assert_allclose(hellinger(P, Q, root=True), np.sqrt(1 - overlap), atol=1e-7)
    assert hellinger(P, P).max() == 0
