"""Anything array-like becomes an array of real numbers, or an error says why it cannot."""

import os
from typing import Any

import numpy as np

from dforest.errors import DataError

_KINDS = {"U": "text", "S": "bytes", "T": "text", "M": "dates", "m": "time spans", "V": "records"}


class DataTypeError(DataError, TypeError):
    """A value of a type that cannot be a number: both a `DataError` and a `TypeError`."""


def check_places(matrix: Any, what: str) -> Any:
    """Return a CSR ``matrix`` whose indices are within its shape; scipy does not look.

    Compiled code would write wherever they point.
    """
    ends, n_columns = matrix.indptr, matrix.shape[1]
    is_sound = len(ends) == matrix.shape[0] + 1 and ends[0] == 0 and (np.diff(ends) >= 0).all()
    if not is_sound or ends[-1] > min(len(matrix.indices), len(matrix.data)):
        raise DataError(f"{what} is a broken sparse matrix: indptr does not fit; build it anew")
    used = matrix.indices[: ends[-1]]
    bad = np.flatnonzero((used < 0) | (used >= n_columns))
    if bad.size:
        row = int(np.searchsorted(ends, bad[0], side="right")) - 1
        raise DataError(
            f"{what} is a broken sparse matrix: row {row} has column {used[bad[0]]}, but columns "
            f"are 0 to {n_columns - 1}; build it anew"
        )
    return matrix


def as_numbers(X: Any, what: str, first_row: int = 0) -> np.ndarray:
    """Return ``X`` as float32 if it is float32, else as float64; any shape, no needless copy.

    Missing values (None, pandas' NA, a masked entry) become NaN. ``first_row`` is added to the row
    in messages, for a caller that reads block by block.
    """
    values = _as_array(X, what)
    kind = values.dtype.kind
    if kind == "O":
        return _from_objects(values, what, first_row)
    if kind == "c":
        raise DataError(
            f"Complex data not supported: {what} is {values.dtype}; pass the real and the "
            f"imaginary part as two arrays of real numbers"
        )
    if kind not in "fiub":
        raise DataError(
            f"{what} holds {_KINDS.get(kind, kind)} ({values.dtype}) where numbers are needed; "
            f"encode it as numbers first"
        )
    is_single = kind == "f" and values.dtype.itemsize == 4
    with np.errstate(over="ignore"):  # beyond float64 becomes infinite, which callers name
        return values.astype(np.float32 if is_single else np.float64, copy=False)


def _as_array(X: Any, what: str) -> np.ndarray:
    if isinstance(X, str | os.PathLike):
        raise DataError(f"{what} is the path {os.fspath(X)!r}, not an array; open it first")
    if isinstance(X, np.ma.MaskedArray) and X.dtype.kind in "fiub":
        return _with_nan(X)
    try:
        return np.asarray(X)
    except ValueError as error:
        raise DataError(f"{what} is no array: {error}; give every row the same length") from None


def _with_nan(X: Any) -> np.ndarray:
    is_single = X.dtype.kind == "f" and X.dtype.itemsize == 4
    return X.astype(np.float32 if is_single else np.float64).filled(np.nan)


def _from_objects(values: np.ndarray, what: str, first_row: int) -> np.ndarray:
    result = np.empty(values.shape)
    for place, value in np.ndenumerate(values):
        if value is None or type(value).__name__ == "NAType":  # pandas' NA, without pandas
            result[place] = np.nan
            continue
        try:
            if isinstance(value, str | bytes):
                raise ValueError(f"{value!r} is text; encode it as numbers first")
            result[place] = float(value)
        except (TypeError, ValueError) as error:
            kind = DataTypeError if isinstance(error, TypeError) else DataError
            where = ", ".join(str(k + first_row * (axis == 0)) for axis, k in enumerate(place))
            at = f"[{where}]" if place else ""
            raise kind(f"{what}{at} is no number: {error}") from None
    return result
