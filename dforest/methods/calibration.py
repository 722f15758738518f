"""Calibrate posteriors on votes that rows got from trees not grown on them: no forest is refitted.

Three ways: a logistic curve for each class (Platt), a monotone step curve for each class (isotonic
regression), both then made to sum to 1; or one temperature of all log votes and a shift for each
class. Votes are (n, K), of which rows of NaN are left out; y is (n,) class codes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression, minimize

from dforest.arrays import check_choice
from dforest.errors import SpecError
from dforest.seeds import stream

Arrays = dict[str, np.ndarray]

FOLDS = 5  # of cross-fitting
FLOOR = 0.02  # share of the prior mixed into votes, as log 0 is no number
RIDGE = 1e-3  # of squared parameters beside the sum of log losses, so that all stay finite


@dataclass(frozen=True)
class Calibrator:
    """A fitted map from votes to posteriors, as flat arrays."""

    method: str
    arrays: Arrays

    def __call__(self, votes: np.ndarray) -> np.ndarray:
        """Posteriors (n, K) of votes (n, K); each row sums to 1. NaN stays NaN."""
        return METHODS[self.method].apply(self.arrays, votes)


class Method(NamedTuple):
    """How to fit a map, and how to use it."""

    fit: Callable[[np.ndarray, np.ndarray], Arrays]
    apply: Callable[[Arrays, np.ndarray], np.ndarray]


def calibrate(method: str, votes: np.ndarray, y: np.ndarray) -> Calibrator:
    """Fit a map from votes to posteriors.

    Raises
    ------
    SpecError
        There is no such method, or no row has votes.

    Examples
    --------
    >>> votes = np.array([[0.9, 0.1], [0.1, 0.9]] * 200)
    >>> y = np.array([0, 1, 0, 1, 0, 1, 1, 0] * 50)  # three of four are right
    >>> calibrate("temperature", votes, y)(votes[:2]).round(2)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    check_choice("calibration", method, METHODS)
    known = ~np.isnan(votes[:, 0])
    if not known.any():
        raise SpecError(
            f'calibration="{method}" is fitted on rows that some tree did not draw, and there are '
            "none; set bootstrap=True, max_samples=0.5, or calibration=None"
        )
    return Calibrator(method, METHODS[method].fit(votes[known], y[known]))


def cross_fitted(method: str, votes: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Posteriors (n, K) of each fold of rows by a map that was fitted on the other folds.

    So that what is calibrated can be judged on the same rows. Folds have equal shares of each
    class. Rows without votes stay NaN, and so does a row that is alone.
    """
    rows = stream(seed, "calibration").permutation(np.flatnonzero(~np.isnan(votes[:, 0])))
    fold = np.full(len(votes), -1)
    fold[rows[np.argsort(y[rows], kind="stable")]] = np.arange(len(rows)) % FOLDS
    found = np.full(votes.shape, np.nan)
    for k in range(FOLDS):
        inside, others = fold == k, (fold != k) & (fold >= 0)
        if inside.any() and others.any():
            found[inside] = calibrate(method, votes[others], y[others])(votes[inside])
    return found


def _prior(y, n_classes: int) -> np.ndarray:
    """Shares of the classes, as if there were one row more of each: none is 0."""
    return (np.bincount(y, minlength=n_classes) + 1.0) / (len(y) + n_classes)


def _to_one(values) -> np.ndarray:
    return values / values.sum(axis=1, keepdims=True)


# One curve for each class ------------------------------------------------------------------------


def _fit_sigmoid(votes, y) -> Arrays:
    """Platt (1999), with his targets, which leave out certainty."""
    curves = []
    for label, share in enumerate(votes.T):
        hits = y == label
        n_hits = hits.sum()
        target = np.where(hits, (n_hits + 1) / (n_hits + 2), 1 / (len(y) - n_hits + 2))

        def loss(curve, share=share, target=target):
            z = curve[0] * share + curve[1]
            apart = _logistic(z) - target
            slope = np.array([(apart * share).sum(), apart.sum()]) + 2 * RIDGE * curve
            return (np.logaddexp(0.0, z) - target * z).sum() + RIDGE * (curve**2).sum(), slope

        curves.append(minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS").x)
    slope, intercept = np.array(curves).T.copy()
    return {"slope": slope, "intercept": intercept}


def _apply_sigmoid(arrays: Arrays, votes) -> np.ndarray:
    return _to_one(_logistic(arrays["slope"] * votes + arrays["intercept"]))


def _logistic(z) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        return np.exp(-np.logaddexp(0.0, -z))


def _fit_isotonic(votes, y) -> Arrays:
    """Steps by least squares, each smoothed by one row of the prior, so that none is 0 or 1."""
    prior = _prior(y, votes.shape[1])
    knots, heights = [], []
    for label, share in enumerate(votes.T):
        known, place, rows = np.unique(share, return_inverse=True, return_counts=True)
        hits = np.bincount(place, weights=y == label)
        steps = isotonic_regression(hits / rows, weights=rows).blocks
        rows, hits = (np.add.reduceat(each, steps[:-1]) for each in (rows, hits))
        smooth = np.maximum.accumulate((hits + prior[label]) / (rows + 1.0))
        knots.append(known)
        heights.append(np.repeat(smooth, np.diff(steps)))
    ends = np.cumsum([0] + [len(each) for each in knots])
    return {"knots": np.concatenate(knots), "heights": np.concatenate(heights), "ends": ends}


def _apply_isotonic(arrays: Arrays, votes) -> np.ndarray:
    found, ends = np.empty(votes.shape), arrays["ends"]
    for label, share in enumerate(votes.T):
        own = slice(ends[label], ends[label + 1])
        found[:, label] = np.interp(share, arrays["knots"][own], arrays["heights"][own])
    return _to_one(found)


# One temperature for all -------------------------------------------------------------------------


def _fit_temperature(votes, y) -> Arrays:
    """Least log loss; the temperature is 1 / sharpness."""
    prior, rows = _prior(y, votes.shape[1]), np.arange(len(y))
    logs = _logs(votes, prior)

    def loss(given):
        sharpness, shift = np.exp(given[0]), given[1:]
        scores = _log_softmax(sharpness * logs + shift)
        apart = np.exp(scores)
        apart[rows, y] -= 1.0
        slope = np.concatenate([[sharpness * (apart * logs).sum()], apart.sum(axis=0)])
        return -scores[rows, y].sum() + RIDGE * (given**2).sum(), slope + 2 * RIDGE * given

    found = minimize(loss, np.zeros(1 + len(prior)), jac=True, method="L-BFGS-B").x
    return {"sharpness": np.exp(found[:1]), "shift": found[1:], "prior": prior}


def _apply_temperature(arrays: Arrays, votes) -> np.ndarray:
    logs = _logs(votes, arrays["prior"])
    return _to_one(np.exp(_log_softmax(arrays["sharpness"] * logs + arrays["shift"])))


def _logs(votes, prior) -> np.ndarray:
    return np.log((1.0 - FLOOR) * votes + FLOOR * prior)


def _log_softmax(scores) -> np.ndarray:
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


METHODS = {
    "sigmoid": Method(_fit_sigmoid, _apply_sigmoid),
    "isotonic": Method(_fit_isotonic, _apply_isotonic),
    "temperature": Method(_fit_temperature, _apply_temperature),
}
