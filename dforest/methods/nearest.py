"""The nearest rows at a learned distance: blocks of pairs pass by, and only the k best are kept."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dforest.errors import DataError
from dforest.jit import jit
from dforest.methods.asked import Asked, answer, column_blocks, row_blocks, sorted_rows
from dforest.methods.material import Held, Mapped, within_reach
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.passes import Part, Pass

WIDE = 4  # times the columns of other blocks: a thread holds one, and what leaves tell lasts longer
NOBODY = np.iinfo(np.int64).max  # number of a place that is free yet


@dataclass(frozen=True)
class Search:
    """Rows whose nearest are looked for among others."""

    asked: Asked
    own: np.ndarray | None  # (a,) int64: number of each row among the others, which is left out

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        arrays, facts = self.asked.flat()
        return arrays | ({} if self.own is None else {"own": self.own}), facts

    @classmethod
    def from_flat(cls, arrays, facts) -> "Search":
        """Put together again."""
        return cls(Asked.from_flat(arrays, facts), arrays.get("own"))


def check_k(k: int, n: int, *, skip_self: bool) -> None:
    """Refuse more neighbours than there are among n rows."""
    if not 1 <= k <= n - skip_self:
        raise DataError(f"n_neighbors must be from 1 to {n - skip_self}, got {k}")


def nearest(
    asked: Asked, k: int, runner: Here | Cluster, *, skip_self=False
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest rows of the other side for each row of one; never all pairs at once.

    Equal distances are taken in the order of rows, NaN last. ``skip_self`` says that both sides are
    the same rows, and none is its own neighbour. A task holds one block of pairs, and its rows'
    k best.

    Returns
    -------
    distances (a, k) float64, indices (a, k) int64
    """
    a, b = asked.shape
    check_k(k, b, skip_self=skip_self)
    order = sorted_rows(asked.ones)
    ordered = dataclasses.replace(asked, ones=asked.ones[order], others=asked.right)
    search = Search(ordered, order if skip_self else None)
    distance, index = np.empty((a, k)), np.empty((a, k), np.int64)
    blocks = row_blocks(a, runner)
    with within_reach(search, runner) as source:
        step = functools.partial(_nearest_of, source=source, k=k)
        parts = runner.run(Pass("nearest", step, [[rows] for rows in blocks]))
        for rows, part in zip(blocks, parts, strict=True):
            distance[order[rows]], index[order[rows]] = part["distance"], part["index"]
    return distance, index


def _nearest_of(rows: slice, *, source: Held[Search] | Mapped[Search], k: int) -> Part:
    """Task: the nearest of some rows."""
    search = source.open()
    n = rows.stop - rows.start
    own = np.full(n, -1, np.int64) if search.own is None else np.array(search.own[rows])
    best, index = np.full((n, k), np.inf), np.full((n, k), NOBODY)
    for columns in column_blocks(search.asked.shape[1], -(-n // WIDE)):
        keep_nearest(answer(search.asked, rows, columns).mean, columns.start, own, best, index)
    order = np.lexsort((index, best))
    best, index = (np.take_along_axis(kept, order, axis=1) for kept in (best, index))
    best[np.isinf(best)] = np.nan
    return {"distance": best, "index": index}


@jit
def keep_nearest(apart, first, own, best, index):
    """Let the columns of a block compete for the k best of each row.

    apart (a, b) with NaN where unknown, of columns numbered from ``first``; own (a,) the number
    that is left out. best and index (a, k): each row a heap by distance and then number, whose
    largest is at 0; infinite where unknown.
    """
    k = best.shape[1]
    for i in range(apart.shape[0]):
        row, heap, numbers = apart[i], best[i], index[i]
        for j in range(len(row)):
            value, number = row[j], first + j
            if np.isnan(value):
                value = np.inf
            if number == own[i] or not _before(value, number, heap[0], numbers[0]):
                continue
            at = 0
            while 2 * at + 1 < k:  # down to where both below are smaller
                child = 2 * at + 1
                if child + 1 < k and _before(
                    heap[child], numbers[child], heap[child + 1], numbers[child + 1]
                ):
                    child += 1
                if not _before(value, number, heap[child], numbers[child]):
                    break
                heap[at], numbers[at] = heap[child], numbers[child]
                at = child
            heap[at], numbers[at] = value, number


@jit
def _before(value, number, other, its_number):
    return value < other or (value == other and number < its_number)
