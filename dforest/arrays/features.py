"""The check of X, the table of features, at every public door."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dforest.arrays.frames import column_names, frame_numbers, is_frame, row_labels
from dforest.arrays.numbers import as_numbers, check_places
from dforest.errors import DataError


class Features(NamedTuple):
    """A checked table of features."""

    values: Any  # (n, p) C-contiguous float32 or float64 ndarray, or scipy CSR of these dtypes
    names: tuple[str, ...] | None  # (p,) names of the columns, where X is a frame that has them
    labels: np.ndarray | None  # (n,) labels of the rows, where X is a pandas frame


def as_features(
    X: Any,
    *,
    what: str = "X",
    feature_names: Sequence[str] | None = None,
    n_features: int | None = None,
    finite: bool = True,
    model: str | None = None,
) -> Features:
    """Return ``X`` as checked `Features`, or say what is wrong with it.

    Parameters
    ----------
    X : (n, p) array-like
        numpy, lists, a pandas or polars frame, scipy sparse, or anything with ``__array__``
        (zarr, dask). float32 stays float32; every other kind of number becomes float64. NaN is an
        unknown value. No copy is made where none is needed, and ``X`` is never changed.
    what : str
        What messages call ``X``.
    feature_names, n_features : optional
        What the model was fitted on; ``X`` must agree.
    finite : bool
        Refuse infinities: for training. Queries let them through, as ``x <= t`` is defined.
    model : str, optional
        Name of the estimator's class, for messages.

    Raises
    ------
    DataError
        Not a table of real numbers, no row, no column, an infinite value, or not the features of
        the fitted model.

    Examples
    --------
    >>> as_features([[1, 2], [3, 4]]).values
    array([[1., 2.],
           [3., 4.]])
    >>> as_features([1, 2])
    Traceback (most recent call last):
    dforest.errors.DataError: X must have 2 dimensions (rows, features), got shape (2,). ...
    """
    names = labels = None
    if hasattr(X, "columns") and hasattr(X, "compute"):
        X = X.compute()  # a dask frame: its names and labels come with its values
    if sparse.issparse(X):
        values = _csr(X, what)
    elif is_frame(X):
        names, labels, values = column_names(X, what), row_labels(X), frame_numbers(X, what)
    else:
        values = as_numbers(X, what)
    _check_shape(values.shape, what)
    _check_names(names, feature_names, what, model)
    _check_width(values.shape[1], n_features, what, model)
    if finite:
        _check_finite(values, what)
    if not sparse.issparse(values):
        values = np.ascontiguousarray(values)
    return Features(values, names, labels)


def _csr(X: Any, what: str) -> sparse.csr_array:
    """``X`` in canonical CSR form, leaving the caller's matrix as it was."""
    if X.ndim != 2:
        _check_shape(X.shape, what)
    values = check_places(sparse.csr_array(X), what)
    values = sparse.csr_array(
        (as_numbers(values.data, what), values.indices, values.indptr), shape=values.shape
    )
    if not values.has_canonical_format:
        values = values.copy()  # summing duplicates works in place
        values.sum_duplicates()
    return values


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2:
        raise DataError(
            f"{what} must have 2 dimensions (rows, features), got shape {shape}. "
            f"Reshape your data: {what}.reshape(-1, 1) if it is one feature, "
            f"{what}.reshape(1, -1) if it is one row"
        )
    for thing, size in zip(("row", "feature"), shape, strict=True):
        if size == 0:
            raise DataError(
                f"{what} has 0 {thing}(s) (shape=({shape[0]}, {shape[1]})) while a minimum of 1 is "
                f"required; check how {what} was selected"
            )


def _check_names(names, fitted, what: str, model: str | None) -> None:
    """As scikit-learn: names may be absent, with a warning, but may not differ."""
    if fitted is None:
        return
    if names is None:
        warnings.warn(
            f"{what} does not have valid feature names, but {model or 'this model'} was "
            f"fitted with feature names",
            stacklevel=4,
        )
        return
    if list(names) == list(fitted):
        return
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    # scikit-learn's own words, line by line: its `check_estimator` asks for them.
    message = "The feature names should match those that were passed during fit.\n"
    message += _bullets("Feature names unseen at fit time:\n", unseen)
    message += _bullets("Feature names seen at fit time, yet now missing:\n", missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise DataError(message)


def _bullets(title: str, names: list[str], most: int = 5) -> str:
    shown = [f"- {name}\n" for name in names[:most]] + ["- ...\n"] * (len(names) > most)
    return title + "".join(shown) if names else ""


def _check_width(width: int, fitted: int | None, what: str, model: str | None) -> None:
    if fitted is None or width == fitted:
        return
    if model is None:
        raise DataError(f"{what} has {width} features, but this model was fitted on {fitted}")
    raise DataError(
        f"{what} has {width} features, but {model} is expecting {fitted} features as input"
    )


def _check_finite(values: Any, what: str) -> None:
    stored = values.data if sparse.issparse(values) else values
    bad = np.isinf(stored)
    if not bad.any():
        return
    first = np.unravel_index(np.argmax(bad), bad.shape)
    if sparse.issparse(values):
        row = int(np.searchsorted(values.indptr, first[0], side="right")) - 1
        column = int(values.indices[first[0]])
    else:
        row, column = map(int, first)
    raise DataError(
        f"{what}[{row}, {column}] is {stored[first]:g}; training needs finite values (not inf): "
        f"use NaN where a value is unknown"
    )
