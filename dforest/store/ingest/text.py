"""Text files as rows of cells: plain or gzipped, split by commas, semicolons, tabs or blanks."""

import csv
import gzip
import io
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from dforest.errors import DataError, StoreError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})  # compared in lower case
DELIMITERS = (",", "\t", ";")


class TextRows:
    """Rows of cells of a text file, blank lines left out; iterate once.

    Attributes
    ----------
    done, total : int
        Bytes of the file that were read so far, and of the whole file.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.total = os.stat(self.path).st_size
        self._file = open(self.path, "rb")  # noqa: SIM115 (closed by close)
        raw = gzip.GzipFile(fileobj=self._file) if self.path.suffix == ".gz" else self._file
        self._text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")  # type: ignore[type-var]
        self._rows = self._split()

    @property
    def done(self) -> int:
        """Bytes read so far."""
        return self._file.tell()

    def __iter__(self) -> Iterator[list[str]]:
        return self._rows

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._text.close()
        self._file.close()

    def _split(self) -> Iterator[list[str]]:
        try:
            first = next((line for line in self._text if line.strip()), None)
            if first is None:
                raise DataError(f"{self.path} is empty")
            lines = _chain(first, self._text)
            delimiter = next((mark for mark in DELIMITERS if mark in first), None)
            if delimiter is None:
                yield from (cells for cells in map(str.split, lines) if cells)
            else:
                rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
                yield from (
                    cells for cells in rows if cells and (len(cells) > 1 or cells[0].strip())
                )
        except UnicodeDecodeError as error:
            raise DataError(f"{self.path} is not UTF-8 text ({error.reason})") from None
        except (csv.Error, EOFError, gzip.BadGzipFile) as error:
            raise StoreError(f"{self.path} cannot be read as text: {error}") from None


def _chain(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def is_number(cell: str) -> bool:
    """Whether a cell reads as a number; a missing one does not."""
    try:
        return not np.isnan(float(cell))
    except ValueError:
        return False


def as_numbers(cells: Sequence, where: str, first: int = 0, what: str = "row") -> np.ndarray:
    """Cells as float64, NaN where missing; complains about the first that is no number.

    >>> as_numbers(["1.5", "", "NA"], "column 'a'")
    array([1.5, nan, nan])
    """
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        pass
    values = np.empty(len(cells))
    for at, cell in enumerate(cells):
        try:
            values[at] = np.nan if cell.strip().lower() in MISSING else float(cell)
        except ValueError:
            raise DataError(f"{where}, {what} {first + at}: {cell!r} is not a number") from None
    return values
