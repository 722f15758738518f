"""Tables with named columns (CSV, Parquet) as blocks of points with ids, labels, responses."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dforest.errors import DataError, SpecError
from dforest.store.ingest.text import TextRows, as_numbers, is_number

try:
    import pyarrow.parquet as parquet
except ImportError:  # the extra "parquet" is not installed
    parquet = None

CELLS = 2**19  # cells of a block of text: some 40 MB while it is parsed


class Block(NamedTuple):
    """Some rows, in order."""

    points: Any  # (rows, p) ndarray or CSR
    ids: Any  # (rows,) or None
    labels: Any  # (rows,) or None
    response: Any  # (rows, q) or None
    done: int  # of the source, after this block: bytes of text, else rows
    total: int | None


class Source(NamedTuple):
    """Points that arrive block by block."""

    feature_names: list[str] | None
    response_names: list[str] | None
    blocks: Iterator[Block]


class Columns(NamedTuple):
    """What the caller says about the columns of a table."""

    id_column: str | None = None
    label_column: str | None = None
    response_columns: tuple[str, ...] = ()
    feature_columns: tuple[str, ...] | None = None

    def resolve(self, path, names: Sequence[str]) -> "Columns":
        """All columns by name; features are what is left, a first column without a name is ids."""
        twice = [name for name in names if list(names).count(name) > 1]
        if twice:
            raise DataError(f"{path}: column {twice[0]!r} is there twice; names must differ")
        id_column = self.id_column
        if id_column is None and names[0].strip() == "":  # as data frames are written
            id_column = names[0]
        used = [id_column, self.label_column, *self.response_columns]
        left = [name for name in names if name not in used]
        features = tuple(left) if self.feature_columns is None else tuple(self.feature_columns)
        for name in [*used, *features]:
            if name is not None and name not in names:
                known = ", ".join(map(repr, names[:20]))
                raise SpecError(f"{path} has no column {name!r}; it has {known}")
        if not features:
            raise DataError(f"{path} has no feature columns besides {', '.join(map(repr, names))}")
        return Columns(id_column, self.label_column, tuple(self.response_columns), features)

    @property
    def given(self) -> bool:
        """Whether the caller named any column."""
        return self != Columns()


def read_text(path, columns: Columns) -> Source:
    """CSV with a header, its rows counted only while they are read."""
    with TextRows(path) as rows:
        names = next(iter(rows))
    if all(map(is_number, names)) and not _counts(names):
        raise DataError(
            f"{path}: the first line holds numbers ({', '.join(names[:3])}, ...); a table needs a "
            "header with the names of its columns"
        )
    roles = columns.resolve(path, names)
    return Source(list(roles.feature_columns or ()), list(roles.response_columns) or None,
                  _text_blocks(path, names, roles))  # fmt: skip


def _counts(names: list[str]) -> bool:
    """Whether a header just counts its columns, 0, 1, 2, ... or 1, 2, 3, ..."""
    return [int(name) if name.isdigit() else -1 for name in names] in (
        list(range(len(names))),
        list(range(1, len(names) + 1)),
    )


def _text_blocks(path, names: list[str], roles: Columns) -> Iterator[Block]:
    step, first = max(1, CELLS // len(names)), 0
    with TextRows(path) as rows:
        for line in itertools.islice(rows, 1):
            assert line == names
        while block := list(itertools.islice(rows, step)):
            wrong = next((at for at, row in enumerate(block) if len(row) != len(names)), None)
            if wrong is not None:
                raise DataError(
                    f"{path}: row {first + wrong} has {len(block[wrong])} cells, the header has "
                    f"{len(names)}"
                )
            cells = dict(zip(names, zip(*block)))
            yield _block(path, cells, roles, first, len(block), rows.done, rows.total)
            first += len(block)


def read_parquet(path, columns: Columns) -> Source:
    """Parquet, by batches of rows."""
    if parquet is None:
        raise SpecError(
            f"{path}: Parquet needs pyarrow; install it with pip install dforest[parquet]"
        )
    try:
        with parquet.ParquetFile(path) as file:
            names = list(file.schema_arrow.names)
    except (OSError, ValueError) as error:  # pyarrow's own errors are these
        raise DataError(f"{path} is not a Parquet file: {error}") from None
    roles = columns.resolve(path, names)
    return Source(list(roles.feature_columns or ()), list(roles.response_columns) or None,
                  _parquet_blocks(path, roles))  # fmt: skip


def _parquet_blocks(path, roles: Columns) -> Iterator[Block]:
    wanted = [*(roles.feature_columns or ()), *roles.response_columns]
    wanted += [name for name in (roles.id_column, roles.label_column) if name is not None]
    with parquet.ParquetFile(path) as file:
        total, first = file.metadata.num_rows, 0
        step = max(1, CELLS // len(wanted))
        for batch in file.iter_batches(batch_size=step, columns=list(dict.fromkeys(wanted))):
            cells = {name: _as_cells(batch.column(name)) for name in dict.fromkeys(wanted)}
            done = first + batch.num_rows
            yield _block(path, cells, roles, first, batch.num_rows, done, total)
            first = done


def _as_cells(column):
    """Parquet column as ndarray where it holds numbers, else as a list of strings and None."""
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    kind = str(column.type)
    if kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
        values = column.to_numpy(zero_copy_only=False)
        return values.astype(np.float64) if values.dtype == object else values  # bool with nulls
    return ["" if item is None else str(item) for item in column.to_pylist()]


def _block(path, cells: dict, roles: Columns, first: int, n: int, done, total) -> Block:
    features, response = roles.feature_columns or (), roles.response_columns
    points = np.empty((n, len(features)))
    for at, name in enumerate(features):
        points[:, at] = _numbers(path, cells[name], name, first)
    values = np.empty((n, len(response)))
    for at, name in enumerate(response):
        values[:, at] = _numbers(path, cells[name], name, first)
    ids = _names(path, cells, roles.id_column, first)
    labels = _names(path, cells, roles.label_column, first)
    return Block(points, ids, labels, values if response else None, done, total)


def _numbers(path, cells, name: str, first: int) -> np.ndarray:
    if isinstance(cells, np.ndarray):
        return cells
    try:
        return as_numbers(cells, f"{path}: column {name!r}", first)
    except DataError as error:
        raise DataError(
            f"{error}; name it as id_column or label_column, or name the feature columns without it"
        ) from None


def _names(path, cells: dict, name: str | None, first: int):
    if name is None:
        return None
    values = cells[name]
    if isinstance(values, np.ndarray):
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    else:
        values = np.array([cell.strip() for cell in values])
        missing = values == ""
    if missing.any():
        raise DataError(f"{path}: column {name!r}, row {first + missing.argmax()} is missing")
    return values
