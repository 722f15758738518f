"""Square matrices as text: with or without labels of rows and columns."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dforest.errors import DataError
from dforest.store.ingest.text import TextRows, as_numbers, is_number


class Layout(NamedTuple):
    """Where the numbers of a square text file are."""

    n: int
    header: list[str] | None  # (n,) labels of the columns
    has_row_labels: bool


def layout(path) -> Layout | None:
    """Find n and the labels from the number of lines and of cells; None if it is not square."""
    with TextRows(path) as rows:
        first: list[str] = next(iter(rows))
        second: list[str] = next(iter(rows), [])
        n_lines = 1 + bool(second) + sum(1 for _ in rows)
    wide, below = len(first), len(second)
    if n_lines == wide and not _is_value(first[0]) and (below == wide or n_lines == 1):
        return Layout(wide - 1, first[1:], True)  # corner and header, rows with labels
    if n_lines == wide and all(cell.strip() == "" or _is_value(cell) for cell in first):
        return Layout(wide, None, False)
    if n_lines == wide + 1 and below == wide + 1:
        return Layout(wide, first, True)  # as R writes it: a header without a corner
    if n_lines == wide + 1 and below == wide:
        return Layout(wide, first, False)
    if n_lines == wide - 1 and not is_number(first[0]):
        return Layout(n_lines, None, True)
    return None


def looks_like_matrix(path) -> bool:
    """Whether a text file can only be a matrix; labels on columns alone would do for a table."""
    found = layout(path)
    if found is None or found.n < 1:
        return False
    if found.header is None:
        return True
    if not found.has_row_labels:
        return False
    with TextRows(path) as rows:
        labels = [row[0] for row in itertools.islice(rows, 1, 4)]
    return labels == found.header[: len(labels)]


def _is_value(cell: str) -> bool:
    return is_number(cell) or cell.strip().lower() in ("na", "nan")


class Square:
    """A square text file, its rows read one by one."""

    def __init__(self, path):
        found = layout(path)
        if found is None:
            with TextRows(path) as rows:
                widths = [len(row) for row in rows]
            raise DataError(
                f"{path} is not square: {len(widths)} lines of {min(widths)} to {max(widths)} cells"
            )
        self.path, self.n = path, found.n
        self.header, self.has_row_labels = found.header, found.has_row_labels

    @property
    def labels(self) -> list[str] | None:
        """Labels of the rows; they are read from the file when only rows have them."""
        if self.header is not None or not self.has_row_labels:
            return self.header
        with TextRows(self.path) as rows:
            return [row[0] for row in rows]

    def rows(self) -> Iterator[np.ndarray]:
        """Yield rows, (1, n) float64; refuses a row whose label is not its column's."""
        with TextRows(self.path) as rows:
            lines = itertools.islice(rows, self.header is not None, None)
            for i, row in enumerate(lines):
                cells = row[1:] if self.has_row_labels else row
                if len(cells) != self.n:
                    raise DataError(f"{self.path}: row {i} has {len(cells)} numbers, not {self.n}")
                if self.has_row_labels and self.header and row[0] != self.header[i]:
                    raise DataError(
                        f"{self.path}: row {i} is labelled {row[0]!r}, but column {i} "
                        f"{self.header[i]!r}; both must have the same labels in one order"
                    )
                yield as_numbers(cells, f"{self.path}: row {i}", what="column")[None, :]
