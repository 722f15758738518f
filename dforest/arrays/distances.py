"""The check of Z, the matrix of distances between the rows of X, block by block."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dforest.arrays.frames import is_frame, order_by_label, row_labels, show
from dforest.arrays.numbers import as_numbers
from dforest.errors import DataError

TOLERANCE = 1e-5  # asymmetry that rounding explains, as a share of the largest |z|
LEAST = 1e-30  # where differences of distances come near float32's subnormal numbers
BLOCK_BYTES = 1 << 25  # read at once
TILE = 256  # side of the tiles compared with their mirror images: two fit in a core's own cache


class Distances(NamedTuple):
    """A checked matrix of distances."""

    z: np.ndarray  # (n, n) C-contiguous float32, symmetric up to rounding; NaN where unknown
    largest: float  # largest known |z|
    has_unknown: bool  # whether any z is NaN


def as_distances(Z: Any, n: int, *, labels: np.ndarray | None = None) -> Distances:
    """Return ``Z`` as checked `Distances` between ``n`` rows, or say what is wrong with it.

    Parameters
    ----------
    Z : (n, n) array-like
        Symmetric; any sign, the diagonal as it is, NaN where unknown. Any real dtype, order and
        container: a frame, a read-only or memory-mapped array, zarr, dask. It is read by blocks,
        and not copied at all if it is C-contiguous float32 already.
    n : int
        Number of rows of X.
    labels : (n,), optional
        Labels of the rows of X. A pandas frame ``Z`` must have the same labels on both axes and is
        reordered to them; a ``Z`` without labels goes by position. Without ``labels`` the rows go
        by position, and the columns are reordered to the rows.

    Raises
    ------
    DataError
        A wrong shape, the condensed form, a sparse matrix, an infinite value, values beyond float32
        or all below 1e-30, nothing known, or two values for one pair: asymmetry beyond rounding,
        which is 1e-5 of the largest |z| (float16: 1e-3).

    Examples
    --------
    >>> as_distances([[0, 2], [2, 0]], 2)
    Distances(z=array([[0., 2.],
           [2., 0.]], dtype=float32), largest=2.0, has_unknown=False)
    >>> as_distances([[0, 2], [1, 0]], 2)
    Traceback (most recent call last):
    dforest.errors.DataError: Z is not symmetric: Z[0, 1] is 2 but Z[1, 0] is 1, ...
    """
    rows = columns = None
    if hasattr(Z, "columns") and hasattr(Z, "compute"):
        Z = Z.compute()
    if is_frame(Z):
        check_shape(Z.shape, n)
        index, names = row_labels(Z), np.asarray(Z.columns)
        if index is not None:  # polars has names of columns only: they say nothing of rows
            wanted, whose = (index, "Z.index") if labels is None else (labels, "X")
            rows = order_by_label(index, wanted, "Z.index", whose=whose, frame="Z")
            columns = order_by_label(names, wanted, "Z.columns", whose=whose, frame="Z")
            labels = wanted
        Z = Z.to_numpy()
    else:
        labels = None
    Z = _as_readable(Z)
    check_shape(Z.shape, n)
    z, largest, has_unknown = _read(Z, rows, columns, labels)
    if 0 < largest < LEAST:
        raise DataError(
            f"the largest |z| is {largest:g}, and float32 is coarse below {LEAST:g}; rescale Z"
        )
    _check_symmetric(z, largest, max(TOLERANCE, _rounding(Z.dtype)), labels)
    return Distances(z, largest, has_unknown)


def _as_readable(Z: Any) -> Any:
    """``Z`` as something with shape, dtype and slices of rows, not yet read if it is on disk."""
    if sparse.issparse(Z):
        raise DataError(
            "Z is sparse, and an absent entry is no distance; pass Graph(weights) for similarities "
            "or Pairs(i, j, z) where only some distances are known"
        )
    if isinstance(Z, np.ma.MaskedArray):
        return Z  # read block by block, with NaN for what is masked
    if isinstance(Z, np.ndarray):
        return np.asarray(Z)
    is_lazy = hasattr(Z, "shape") and isinstance(getattr(Z, "dtype", None), np.dtype)
    return Z if is_lazy else as_numbers(Z, "Z")


def check_shape(shape: tuple[int, ...], n: int) -> None:
    """Refuse what is no matrix between the n rows of X, the condensed form by name."""
    if tuple(shape) == (n, n):
        return
    if len(shape) == 1 and shape[0] == n * (n - 1) // 2:
        raise DataError(
            f"Z has shape ({shape[0]},), the condensed form of {n} rows; pass the square one: "
            f"scipy.spatial.distance.squareform(Z)"
        )
    raise DataError(f"X has {n} rows, Z is {tuple(shape)}: Z must be ({n}, {n})")


def _read(Z: Any, rows, columns, labels) -> tuple[np.ndarray, float, bool]:
    """Read ``Z`` once, block of rows by block: the matrix, its largest |z|, whether any is NaN."""
    n = Z.shape[0]
    in_place = rows is None and columns is None and _is_ready(Z)
    z = Z if in_place else np.empty((n, n), np.float32)
    largest, has_unknown = -1.0, False
    for start, stop in _bands(Z, n):
        part = Z[start:stop] if rows is None else Z[rows[start:stop]]
        part = as_numbers(part, "Z", first_row=start)
        part = part if columns is None else part[:, columns]
        band = part if in_place else z[start:stop]
        if not in_place:
            _copy(part, band)
        high, low = float(np.max(band)), float(np.min(band))
        if np.isnan(high):
            has_unknown = True
            high = float(np.fmax.reduce(band, axis=None))
            low = float(np.fmin.reduce(band, axis=None))
        if np.isinf(high) or np.isinf(low):
            _refuse_infinite(part, band, start, labels)
        top = max(abs(high), abs(low))
        if top == 0.0 and not in_place:  # rounded away, perhaps
            top = float(np.fmax.reduce(np.abs(part), axis=None))
        largest = float(np.fmax(largest, top))
    if largest < 0:
        raise DataError(f"Z ({n}, {n}) is NaN everywhere; at least one distance must be known")
    return z, largest, has_unknown


def _copy(part: np.ndarray, band: np.ndarray) -> None:
    """Copy by tiles: from Fortran order that is 5 times faster than row by row."""
    with np.errstate(over="ignore"):  # becomes infinite, which the caller names
        for column in range(0, band.shape[1], TILE):
            band[:, column : column + TILE] = part[:, column : column + TILE]


def _is_ready(Z: Any) -> bool:
    is_plain = isinstance(Z, np.ndarray) and not isinstance(Z, np.ma.MaskedArray)
    return is_plain and Z.dtype == np.float32 and Z.flags.c_contiguous and Z.flags.aligned


def _bands(Z: Any, n: int):
    """Bounds of the bands of rows to read: whole chunks, so that none is decompressed twice."""
    chunks = getattr(Z, "chunks", None)
    height = chunks[0] if chunks else 1
    height = max(height) if isinstance(height, tuple) else height  # dask: the sizes of all chunks
    step = height * max(1, BLOCK_BYTES // (8 * max(n, 1) * height))
    return [(start, min(start + step, n)) for start in range(0, n, step)]


def _refuse_infinite(part: np.ndarray, band: np.ndarray, start: int, labels) -> None:
    row, column = map(int, np.unravel_index(np.argmax(np.isinf(band)), band.shape))
    value, where = part[row, column], _place(start + row, column, labels)
    if np.isfinite(value):
        raise DataError(f"{where} is {value:g}, beyond float32's 3.4e38; rescale Z")
    raise DataError(f"{where} is {value:g}; distances are finite: use NaN where one is unknown")


def _place(i: int, j: int, labels) -> str:
    """What the caller types to see z_ij: frames by label, as they may have been reordered."""
    if labels is None:
        return f"Z[{i}, {j}]"
    return f"Z.loc[{show(labels[i])}, {show(labels[j])}]"


def _rounding(dtype: Any) -> float:
    return float(np.finfo(dtype).eps) if np.dtype(dtype).kind == "f" else 0.0


def _check_symmetric(z: np.ndarray, largest: float, tolerance: float, labels) -> None:
    gap, i, j = _worst_pair(z)
    if gap <= tolerance * largest:
        return
    a, b = _place(i, j, labels), _place(j, i, labels)
    if np.isinf(gap):
        way_out = "fill in one from the other: Z = np.where(np.isnan(Z), Z.T, Z)"
        raise DataError(f"{a} is {z[i, j]:g} but {b} is {z[j, i]:g}; {way_out}")
    raise DataError(
        f"Z is not symmetric: {a} is {z[i, j]:g} but {b} is {z[j, i]:g}, the worst pair (allowed: "
        f"{tolerance * largest:.2g}); take the mean of both: Z = (Z + Z.T) / 2"
    )


def _worst_pair(z: np.ndarray) -> tuple[float, int, int]:
    """Largest |z_ij - z_ji| and its place; infinite where only one of the two is known."""
    worst = (0.0, 0, 0)
    for a in range(0, len(z), TILE):
        for b in range(a, len(z), TILE):
            here, there = z[a : a + TILE, b : b + TILE], z[b : b + TILE, a : a + TILE].T
            if (here.view(np.int32) == there.view(np.int32)).all():
                continue  # by bits, as NaN is not equal to itself
            gap = np.abs(np.subtract(here, there, dtype=np.float64))
            gap[np.isnan(here) & np.isnan(there)] = 0.0
            gap[np.isnan(gap)] = np.inf
            i, j = np.unravel_index(np.argmax(gap), gap.shape)
            if gap[i, j] > worst[0]:
                worst = (float(gap[i, j]), a + int(i), b + int(j))
    return worst
