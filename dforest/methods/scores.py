"""How well distances are predicted."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dforest.methods.asked import Asked, answer, cut
from dforest.methods.material import Held, Mapped, within_reach
from dforest.methods.model import under
from dforest.methods.notions import Given
from dforest.methods.stored import store_of
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.passes import Part, Pass

SIDE = 1_024  # rows of a block; fixed, as sums of squares depend on it in their last bits


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


# Of a forest -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """Rows whose pairs a forest answers, and their true distances."""

    asked: Asked
    given: Given
    rows: np.ndarray  # (a,) int64: which of the given ones they are

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        arrays, facts = self.asked.flat()
        arrays |= {f"given.{name}": array for name, array in self.given.arrays.items()}
        given = {"notion": self.given.notion, "given": self.given.facts}
        return arrays | {"rows": self.rows}, {"asked": facts} | given

    @classmethod
    def from_flat(cls, arrays, facts) -> "Judged":
        """Put together again."""
        given = Given(facts["notion"], under("given.", arrays), facts["given"])
        return cls(Asked.from_flat(arrays, facts["asked"]), given, arrays["rows"])


def score(asked: Asked, given: Given, runner: Here | Cluster, rows=None) -> float:
    """R^2 over the known pairs of different rows, each once; a block of pairs is held at a time.

    Parameters
    ----------
    asked : Asked
        The same rows on both sides.
    rows : (a,) int64, optional
        Which of the given ones they are; all of them by default.
    """
    rows = np.arange(given.n_rows) if rows is None else rows
    sides = cut(len(rows), SIDE)
    blocks = [[(one, other)] for i, one in enumerate(sides) for other in sides[i:]]
    with within_reach(Judged(asked, given, rows), runner) as source:
        parts = list(runner.run(Pass("score", functools.partial(_judge, source=source), blocks)))
    n, mean, spread, errors = (np.concatenate([part[k] for part in parts])
                               for k in ("n", "mean", "spread", "errors"))  # fmt: skip
    if not n.sum():
        return float("nan")
    centre = (n * mean).sum() / n.sum()
    spread = spread.sum() + (n * (mean - centre) ** 2).sum()
    return float(1.0 - errors.sum() / spread) if spread > 0 else float("nan")


def _judge(block: tuple[slice, slice], *, source: Held[Judged] | Mapped[Judged]) -> Part:
    """Task: squares of a block of pairs."""
    judged, (one, other) = source.open(), block
    z = between(judged.given, judged.rows[one], judged.rows[other])
    known = ~np.isnan(z)
    if one == other:
        known &= np.triu(np.ones(z.shape, bool), 1)
    z, guess = z[known], answer(judged.asked, one, other).mean[known]
    mean = z.mean() if len(z) else 0.0
    errors, spread = ((z - guess) ** 2).sum(), ((z - mean) ** 2).sum()
    found = {"n": len(z), "mean": mean, "spread": spread, "errors": errors}
    return {name: np.array([value], np.float64) for name, value in found.items()}
