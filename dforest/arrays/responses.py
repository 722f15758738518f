"""The checks of y: labels of classes, or numbers to predict."""

from typing import Any

import numpy as np
from scipy import sparse

from dforest.arrays.frames import frame_numbers, is_frame, order_by_label, row_labels
from dforest.arrays.numbers import as_numbers
from dforest.errors import DataError


def as_labels(y: Any, n: int, *, labels: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return class codes (n,) int64 and the sorted classes (K,), or say what is wrong with ``y``.

    Parameters
    ----------
    y : (n,) or (n, 1) array-like
        Whole numbers, bools or text; ``classes[codes]`` is ``y`` again.
    n : int
        Number of rows of X.
    labels : (n,), optional
        Labels of the rows of X; a pandas ``y`` must have the same and is reordered to them.

    Raises
    ------
    DataError
        A wrong shape, a missing label, numbers that are not whole, or labels of rows that X lacks.

    Examples
    --------
    >>> codes, classes = as_labels(["cat", "ant", "cat"], 3)
    >>> codes, classes.tolist()
    (array([1, 0, 1]), ['ant', 'cat'])
    """
    values = np.asarray(_by_label(y, n, labels))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"y should be a 1d array of one label a row, got shape {values.shape}")
    _check_length(values.shape, n)
    if values.dtype.kind == "O":
        missing = np.flatnonzero([_is_missing(label) for label in values])
    else:
        missing = np.flatnonzero(values != values)  # NaN, NaT
    if missing.size:
        raise DataError(f"y[{missing[0]}] is missing (NaN or None); drop such rows")
    if values.dtype.kind == "c":
        raise DataError(f"Complex data not supported: y is {values.dtype}; give labels of classes")
    if values.dtype.kind == "f" and not (np.isfinite(values) & (values == np.floor(values))).all():
        raise DataError(
            "Unknown label type: continuous: y holds numbers that are not whole; give labels of "
            "classes, or use a regressor"
        )
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = " and ".join(sorted({type(label).__name__ for label in values}))
        raise DataError(
            f"Unknown label type: y mixes {kinds}; make all text, as [str(label) for label in y]"
        ) from None
    return codes.astype(np.int64), classes


def as_response(y: Any, n: int, *, labels: np.ndarray | None = None) -> np.ndarray:
    """Return the response as (n, q) float64, or say what is wrong with ``y``.

    ``y`` is (n,) or (n, q), finite; ``labels`` as in `as_labels`. Raises DataError for a wrong
    shape, text, and NaN or infinity, naming the row.

    >>> as_response([1, 2, 3], 3)
    array([[1.],
           [2.],
           [3.]])
    """
    y = _by_label(y, n, labels)
    values = np.asarray(frame_numbers(y, "y") if is_frame(y) else as_numbers(y, "y"), np.float64)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2 or values.shape[1] == 0:
        raise DataError(f"y must be (n,) or (n, q), got shape {values.shape}")
    _check_length(values.shape, n)
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if bad.size:
        raise DataError(
            f"y has NaN or infinity in {bad.size} row(s), the first is row {bad[0]}; drop such rows"
        )
    return np.ascontiguousarray(values)


def _by_label(y: Any, n: int, labels: np.ndarray | None) -> Any:
    """``y`` in the order of the rows of X, where both have labels."""
    if y is None:
        raise DataError("this method requires y to be passed, but the target y is None")
    if sparse.issparse(y):
        raise DataError("y is sparse; give y.toarray()")
    if hasattr(y, "compute") and not isinstance(y, np.ndarray):
        y = y.compute()
    index = row_labels(y)
    if index is None or labels is None:
        return y
    _check_length(index.shape, n)
    order = order_by_label(index, labels, "y")
    return y if order is None else y.iloc[order]


def _check_length(shape: tuple[int, ...], n: int) -> None:
    if shape[0] != n:
        raise DataError(f"X has {n} rows, y has {shape[0]} (shape {shape}); give one y a row")


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or label != label
