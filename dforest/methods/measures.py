"""How good posteriors are: y (n,) class codes, posteriors (n, K) whose rows sum to 1."""

import numpy as np

BINS = 15  # of the calibration error, as in the papers


def brier(y: np.ndarray, posteriors: np.ndarray) -> float:
    """Mean over rows of the squared distance of the posterior from what was: 0 to 2.

    >>> brier(np.array([0, 1]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    0.25
    """
    apart = np.array(posteriors, np.float64)
    apart[np.arange(len(y)), y] -= 1.0
    return float((apart**2).sum(axis=1).mean())


def log_loss(y: np.ndarray, posteriors: np.ndarray, floor: float = np.finfo(float).eps) -> float:
    """Mean of -log of the posterior of what was, in nats; none counts as less than ``floor``.

    >>> log_loss(np.array([0, 1]), np.array([[1.0, 0.0], [0.5, 0.5]])).__round__(3)
    0.347
    """
    return float(-np.log(np.maximum(posteriors[np.arange(len(y)), y], floor)).mean())


def calibration_error(y: np.ndarray, posteriors: np.ndarray, bins: int = BINS) -> float:
    """Expected calibration error (ECE) of the predicted class.

    Rows fall into ``bins`` of equal width by the posterior of the class predicted; the difference
    of its mean from the share of right predictions, as a mean over rows.

    >>> calibration_error(np.array([0, 1]), np.array([[0.9, 0.1], [0.9, 0.1]])).__round__(3)
    0.4
    """
    told = posteriors.max(axis=1)
    right = posteriors.argmax(axis=1) == y
    place = np.minimum((told * bins).astype(np.int64), bins - 1)
    gaps = np.bincount(place, weights=right - told, minlength=bins)
    return float(np.abs(gaps).sum() / len(y))


def hellinger(posteriors: np.ndarray, truth: np.ndarray, root: bool = False) -> np.ndarray:
    """Hellinger distance of posteriors from true ones, row by row: (n, K), (n, K) -> (n,).

    As the Uncertainty Forest paper prints it, 1/sqrt(2) * sum (sqrt p - sqrt q)^2; with ``root``
    the distance proper, sqrt(sum (sqrt p - sqrt q)^2) / sqrt(2), which is 0 to 1.

    >>> one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> hellinger(one, other).round(3), hellinger(one, other, root=True).round(3)
    (array([1.414]), array([1.]))
    """
    apart = ((np.sqrt(posteriors) - np.sqrt(truth)) ** 2).sum(axis=1)
    return (np.sqrt(apart) if root else apart) / np.sqrt(2.0)
