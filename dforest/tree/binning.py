"""Features become codes: small whole numbers in the order of the values.

The engine compares codes; a grown tree holds thresholds in the unit of the feature, so prediction
needs no codes. ``low`` and ``high`` are the least and greatest training value of each code: a
threshold lies between ``high`` of the code left of it and ``low`` of the code right of it, and so
a training row always returns to its leaf.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit

QUANTILE_ROWS = 200_000  # rows looked at for quantiles: bins of .4 % are then known to .03 %


class Table(NamedTuple):
    """The rows' features as the engine reads them. Code ``n_codes[j]`` means NaN in column j."""

    codes: np.ndarray  # (p, n) uint8, uint16 or uint32, feature-major
    n_codes: np.ndarray  # (p,) int64
    low: np.ndarray  # (sum of n_codes,) float64
    high: np.ndarray  # (sum of n_codes,) float64
    offsets: np.ndarray  # (p + 1,) int64: where each feature begins in low and high
    by_row: np.ndarray  # (n, p) codes again, row-major, or (0, 0): for copying small blocks
    values: np.ndarray  # (n, p) float64 features for oblique candidates, or (0, 0)


def make_table(X, *, max_bins=None, row_major=False, keep_values=False) -> Table:
    """Code every column of ``X`` (n, p), dense or scipy CSR.

    Parameters
    ----------
    max_bins : int or None
        None gives every distinct value its own code (exact); a number at most that many quantile
        bins a column.
    row_major, keep_values : bool
        Also hold the codes row by row; also hold the values (oblique candidates need them).
    """
    n, p = X.shape
    columns = X.tocsc() if hasattr(X, "tocsc") else X
    edges = [_edges(_column(columns, j, n), max_bins) for j in range(p)]
    widest = max((len(edge) for edge in edges), default=0)
    dtype = next(d for d in (np.uint8, np.uint16, np.uint32) if widest <= np.iinfo(d).max)
    codes = np.empty((p, n), dtype)
    low, high = ([np.empty(len(edge)) for edge in edges] for _ in range(2))
    for j in range(p):
        assign_codes(_column(columns, j, n), edges[j], codes[j], low[j], high[j])
    sizes = np.array([len(edge) for edge in edges], np.int64)
    return Table(
        codes,
        sizes,
        np.concatenate([np.empty(0), *low]),
        np.concatenate([np.empty(0), *high]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.ascontiguousarray(codes.T) if row_major else np.empty((0, 0), dtype),
        _dense(X) if keep_values else np.empty((0, 0)),
    )


def _column(columns, j, n) -> np.ndarray:
    if not hasattr(columns, "tocsc"):
        return np.ascontiguousarray(columns[:, j], np.float64)
    dense, part = np.zeros(n), slice(columns.indptr[j], columns.indptr[j + 1])
    dense[columns.indices[part]] = columns.data[part]
    return dense


def _dense(X) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if hasattr(X, "tocsc") else X, np.float64)


def _edges(column, max_bins) -> np.ndarray:
    """Greatest value of each code, ascending; all distinct values, or the ends of quantile bins."""
    if max_bins is not None and len(column) > QUANTILE_ROWS:
        step = len(column) / QUANTILE_ROWS
        sample = column[(np.arange(QUANTILE_ROWS) * step).astype(np.int64)]
        values, counts = np.unique(sample[~np.isnan(sample)], return_counts=True)
        if len(values) <= max_bins:  # few distinct values: the sample may have missed some
            values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    else:
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
    if max_bins is None or len(values) <= max_bins:
        return values
    share = np.cumsum(counts) / counts.sum()
    ends = np.unique(np.searchsorted(share, np.arange(1, max_bins) / max_bins))
    return np.append(values[ends[ends < len(values) - 1]], np.inf)


@jit
def assign_codes(column, edges, codes, low, high):
    """Write each value's code, and the least and greatest value that each code received.

    column (n,) float64 with NaN where unknown; edges (k,) ascending, the greatest value of each
    code; codes (n,), low (k,) and high (k,) are written. A code without a row keeps its edge.
    """
    low[:] = np.inf
    high[:] = -np.inf
    for i in range(len(column)):
        value = column[i]
        if np.isnan(value):
            codes[i] = len(edges)
            continue
        code = np.searchsorted(edges, value)
        codes[i] = code
        low[code] = min(low[code], value)
        high[code] = max(high[code], value)
    for code in range(len(edges)):
        if low[code] > high[code]:
            low[code] = high[code] = edges[code]


@jit
def between(a, b):
    """A threshold t with a <= t < b: the midpoint, unless rounding takes it out of the interval."""
    middle = 0.5 * a + 0.5 * b
    return middle if a <= middle < b else a
