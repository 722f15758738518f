"""Distances of which only some are known: ratings, constraints, a few measured pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dforest.arrays.distances import TOLERANCE
from dforest.arrays.frames import is_frame
from dforest.arrays.numbers import as_numbers
from dforest.arrays.parameters import check_count
from dforest.errors import DataError


@dataclass(frozen=True, eq=False)
class Pairs:
    """Known distances ``z`` of the pairs of rows ``i`` and ``j``; all other pairs are unknown.

    Parameters
    ----------
    i, j : (m,) int
        Row numbers. A pair has no order and may be of a row with itself.
    z : (m,) float
        Finite, any sign.
    n_rows : int, optional
        Number of rows of X, to check the row numbers against at once.

    Attributes
    ----------
    i, j : (m,) int64
        With ``i <= j``, sorted by i, then j; each pair once.
    z : (m,) float64
    n_rows : int or None

    Raises
    ------
    DataError
        No pair at all, lengths that differ, row numbers that are no whole numbers from 0, a
        distance that is not finite, or a pair given twice with two distances.

    Examples
    --------
    >>> pairs = Pairs([2, 0], [1, 2], [0.5, 4.0])
    >>> pairs
    Pairs(2 pairs of rows up to 2)
    >>> pairs.i, pairs.j, pairs.z
    (array([0, 1]), array([2, 2]), array([4. , 0.5]))
    """

    i: np.ndarray
    j: np.ndarray
    z: np.ndarray
    n_rows: int | None = None

    def __post_init__(self):
        n_rows = None if self.n_rows is None else check_count("n_rows", self.n_rows)
        i, j = row_numbers(self.i, "i"), row_numbers(self.j, "j")
        z = vector(self.z, "z")
        if not len(i) == len(j) == len(z):
            raise DataError(
                f"i, j and z have {len(i)}, {len(j)} and {len(z)} elements; give one of each a pair"
            )
        if len(z) == 0:
            raise DataError("Pairs has 0 pairs; give at least one known distance")
        bad = np.flatnonzero(~np.isfinite(z))
        if bad.size:
            raise DataError(
                f"z[{bad[0]}] is {z[bad[0]]:g}; distances are finite: leave unknown pairs out"
            )
        i, j, z = unordered(i, j, z, "Pairs", "z")
        for name, value in (("i", i), ("j", j), ("z", z), ("n_rows", n_rows)):
            object.__setattr__(self, name, value)
        if n_rows is not None:
            self.for_rows(n_rows)

    def for_rows(self, n: int) -> "Pairs":
        """The same pairs, known to fit ``n`` rows of X; DataError if they do not.

        >>> Pairs([0], [7], [1.0]).for_rows(7)
        Traceback (most recent call last):
        dforest.errors.DataError: X has 7 rows (0 to 6), but a pair names row 7
        """
        if self.j.max() >= n:
            raise DataError(f"X has {n} rows (0 to {n - 1}), but a pair names row {self.j.max()}")
        if self.n_rows not in (None, n):
            raise DataError(f"X has {n} rows, but these pairs were made for n_rows={self.n_rows}")
        return self if self.n_rows == n else Pairs(self.i, self.j, self.z, n)

    def take(self, rows: Any) -> "Pairs":
        """Pairs among distinct ``rows`` (r,), renumbered 0 to r - 1, as ``Z[rows][:, rows]`` is."""
        rows = row_numbers(rows, "rows")
        place = np.full(1 + max(int(self.j.max()), int(rows.max(initial=0))), -1)
        place[rows] = np.arange(len(rows))
        if np.count_nonzero(place >= 0) < len(rows):
            raise DataError("rows has a row twice; a pair of a row with its copy is not defined")
        i, j = place[self.i], place[self.j]
        inside = (i >= 0) & (j >= 0)
        return Pairs(i[inside], j[inside], self.z[inside], len(rows))

    def dense(self, n: int) -> np.ndarray:
        """The (n, n) float64 matrix with NaN where unknown: for small n and for tests."""
        self.for_rows(n)
        z = np.full((n, n), np.nan)
        z[self.i, self.j] = z[self.j, self.i] = self.z
        return z

    def __len__(self):
        return len(self.z)

    def __repr__(self):
        rows = f"up to {self.j.max()}" if self.n_rows is None else f"of {self.n_rows}"
        return f"Pairs({len(self)} pairs of rows {rows})"


def vector(values: Any, name: str) -> np.ndarray:
    """A (m,) float64 array of numbers."""
    result = np.asarray(as_numbers(values, name), np.float64)
    if result.ndim != 1:
        raise DataError(
            f"{name} must have 1 dimension, got shape {result.shape}; give {name}.ravel()"
        )
    return result


def row_numbers(values: Any, name: str) -> np.ndarray:
    """An array of row numbers as int64, any shape: whole and not negative."""
    numbers = values.to_numpy() if is_frame(values) else np.asarray(values)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise DataError(
            f"{name} holds {numbers.dtype} where row numbers are needed; "
            f"give whole numbers from 0, as {name}.astype(int) makes them"
        )
    if numbers.size and numbers.min() < 0:
        raise DataError(f"{name} names row {numbers.min()}; rows count from 0")
    if numbers.size and numbers.max() > np.iinfo(np.int64).max:
        raise DataError(f"{name} names row {numbers.max()}, beyond any table; rows count from 0")
    return numbers.astype(np.int64)


def unordered(i, j, value, what: str, letter: str):
    """Each pair once, with i <= j, sorted; given twice, its values must agree up to rounding."""
    i, j = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((value, j, i))
    i, j, value = i[order], j[order], value[order]
    is_first = np.r_[True, (np.diff(i) != 0) | (np.diff(j) != 0)][: len(i)]
    first = np.flatnonzero(is_first)
    last = np.r_[first, len(i)][1:] - 1
    spread = value[last] - value[first]  # values of one pair are sorted, so this is their range
    bad = np.flatnonzero(spread > TOLERANCE * np.abs(value).max(initial=0.0))
    if bad.size:
        low, high = first[bad[0]], last[bad[0]]
        raise DataError(
            f"{what} has rows {i[low]} and {j[low]} twice, with {letter} {value[low]:g} and "
            f"{value[high]:g}; give each pair one {letter}, such as their mean"
        )
    return i[first], j[first], value[first]
