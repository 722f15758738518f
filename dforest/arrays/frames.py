"""Tables with labels (pandas, polars), known by what they can do: neither library is needed."""

from typing import Any

import numpy as np

from dforest.arrays.numbers import DataTypeError, as_numbers
from dforest.errors import DataError


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a table of named columns."""
    return all(hasattr(X, name) for name in ("columns", "dtypes", "to_numpy"))


def row_labels(X: Any) -> np.ndarray | None:
    """Labels of the rows of a pandas frame or series; None for anything without labels."""
    index = getattr(X, "index", None)
    return None if index is None or callable(index) else np.asarray(index)  # list.index is a method


def column_names(frame: Any, what: str) -> tuple[str, ...] | None:
    """Names of the columns if all are text, None if none is; a mixture is refused."""
    names = list(frame.columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        odd = names[texts.index(False)]
        raise DataTypeError(
            f"{what} has column names of mixed types: {odd!r} is a {type(odd).__name__}, others "
            f"are text; make all text with {what}.columns = {what}.columns.astype(str)"
        )
    return tuple(names) if names and all(texts) else None


def frame_numbers(frame: Any, what: str) -> np.ndarray:
    """Values (n, p) of a frame as float32 or float64; a column that holds no numbers is named."""
    values = frame.to_numpy()
    if values.dtype.kind in "fiubc":
        return as_numbers(values, what)
    if hasattr(frame, "iloc"):  # by number: two columns may share a name
        columns = [frame.iloc[:, number] for number in range(frame.shape[1])]
    else:
        columns = frame.get_columns()
    parts = [
        as_numbers(column.to_numpy(), f"{what} column {name!r}")
        for name, column in zip(frame.columns, columns, strict=True)
    ]
    return np.column_stack(parts) if parts else np.empty(frame.shape)


def order_by_label(
    found: np.ndarray, wanted: np.ndarray, what: str, *, whose: str = "X", frame: str | None = None
) -> np.ndarray | None:
    """Where each wanted label is in ``found``: ``found[order] == wanted``.

    Both are (n,). None says that they are in the same order already. Labels that are text on one
    side only are compared as text, for a CSV file turns the names of its columns into text.
    Messages call the labels found ``what``, a part of ``frame``, and those wanted ``whose``.

    >>> order_by_label(np.array(["b", "c", "a"]), np.array(["a", "b", "c"]), "Z")
    array([2, 0, 1])
    """
    have, want = list(found), list(wanted)
    if have == want:
        return None
    if _all_text(have) != _all_text(want):
        have, want = [str(label) for label in have], [str(label) for label in want]
    places = {label: place for place, label in enumerate(have)}
    strange = set(places).difference(want)
    for label in want:
        if label not in places:
            instead = next((f" but {show(other)}" for other in have if other in strange), "")
            raise DataError(
                f"{whose} has the label {show(label)}, {what} has not{instead}; give both the same "
                f"labels, or pass {frame or what}.to_numpy() to go by position"
            )
    if len(set(want)) < len(want):
        raise DataError(
            f"{whose} has {len(want)} rows but {len(set(want))} different labels, and {what} has "
            f"them in another order; make labels unique, or pass {frame or what}.to_numpy() to go "
            f"by position"
        )
    return np.array([places[label] for label in want], np.int64)


def show(label: Any) -> str:
    """A label as it was typed: 3, not np.int64(3)."""
    return repr(label.item() if isinstance(label, np.generic) else label)


def _all_text(labels: list) -> bool:
    return all(isinstance(label, str) for label in labels)
