"""How well distances are predicted."""

import numpy as np
from scipy import sparse

from dforest.methods.notions import Given
from dforest.methods.stored import store_of


def between(given: Given, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Distances of some rows with others: (a, b) float64, NaN where unknown."""
    arrays = given.arrays
    if given.is_stored:
        own = arrays["rows"]
        return store_of(given)[own[rows], own[columns]].astype(np.float64)
    if given.notion == "precomputed":
        return arrays["z"][np.ix_(rows, columns)].astype(np.float64)
    if given.notion in ("pairs", "graph"):
        return _listed_between(given, rows, columns)
    y, other = arrays["y"][rows], arrays["y"][columns]
    if given.notion == "indicator":
        return (y[:, None] != other).astype(np.float64)
    if given.notion == "absolute":
        return np.abs(y[:, None] - other)
    return 0.5 * ((y[:, None, :] - other[None, :, :]) ** 2).sum(axis=2)


def _listed_between(given: Given, rows, columns) -> np.ndarray:
    """Listed pairs spread over a matrix of the others' distance, far or unknown."""
    first, second, n = given.arrays["first"], given.arrays["second"], given.n_rows
    one_way = sparse.csr_array((np.arange(1, len(first) + 1), (first, second)), shape=(n, n))
    number = one_way.maximum(one_way.T)[rows][:, columns].toarray()
    z = np.append(given.facts["far"], given.arrays["z"])[number]
    if given.notion == "graph":
        z[rows[:, None] == columns] = 0.0
    return z


def r_squared(z: np.ndarray, guess: np.ndarray) -> float:
    """1 - squared errors / squared distances from the mean, over known z; NaN if all z are equal.

    >>> r_squared(np.array([0.0, 1.0, np.nan]), np.array([0.0, 0.5, 7.0]))
    0.5
    """
    known = ~np.isnan(z)
    z, guess = z[known], guess[known]
    spread = ((z - z.mean()) ** 2).sum() if len(z) else 0.0
    return float(1.0 - ((z - guess) ** 2).sum() / spread) if spread > 0 else float("nan")


def r_squared_within(given: Given, rows: np.ndarray, guess: np.ndarray) -> float:
    """R^2 over the known pairs of different ``rows`` (a,), each once; guess (a, a)."""
    above = np.triu_indices(len(rows), 1)
    return r_squared(between(given, rows, rows)[above], guess[above])
