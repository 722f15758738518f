"""Arrays that grow at their end, block by block, and the columns of names beside them."""

import numpy as np
import zarr

from dforest.errors import DataError, StoreError
from dforest.store import schema
from dforest.store.disk import writing

STRING = np.dtypes.StringDType()
NAMES_PER_BLOCK = 2**16


class Column:
    """An array of unknown length: rows are appended, whole blocks are written.

    At most one block is held in memory. `finish` writes the last, smaller one.

    Parameters
    ----------
    array : zarr.Array
        As made by `create`; rows already in it are kept, and a last block that is not full is
        written again with the new rows.
    """

    def __init__(self, array: zarr.Array):
        self.array = array
        self.rows = schema.block_shape(array)[0]
        self.n_rows = array.shape[0]
        tail = self.n_rows % self.rows
        self._held = [schema.read(array, slice(self.n_rows - tail, None))] if tail else []
        self._n_held = tail

    @classmethod
    def create(cls, group: zarr.Group, name: str, dtype, row_shape=(), *, rows: int) -> "Column":
        """Start an empty one, with blocks of ``rows`` rows."""
        shape, chunks = (0, *row_shape), (rows, *row_shape)
        return cls(schema.create_array(group, name, shape, dtype, chunks))

    def append(self, values: np.ndarray) -> None:
        """Add rows at the end."""
        self._held.append(values)
        self._n_held += len(values)
        self.n_rows += len(values)
        if self._n_held >= self.rows:
            pending = np.concatenate(self._held)
            whole = len(pending) - len(pending) % self.rows
            for start in range(0, whole, self.rows):
                self._write(pending[start : start + self.rows], self.n_rows - len(pending) + start)
            self._held, self._n_held = [pending[whole:].copy()], len(pending) - whole

    def finish(self) -> None:
        """Write what is held."""
        if self._n_held:
            self._write(np.concatenate(self._held), self.n_rows - self._n_held)
            self._held, self._n_held = [], 0

    def _write(self, values: np.ndarray, start: int) -> None:
        with writing(f"{schema.place_of(self.array)}: array {self.array.path!r}"):
            self.array.resize((start + len(values), *self.array.shape[1:]))
        block = (start // self.rows, *[0] * (self.array.ndim - 1))
        schema.write_block(self.array, block, values.astype(self.array.dtype, copy=False))


def as_ids(ids) -> np.ndarray:
    """Names of rows as strings: (n,) StringDType; whole numbers are written without a point."""
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise DataError(f"ids must have 1 dimension, got shape {ids.shape}")
    if ids.dtype.kind == "f" and (ids == np.round(ids)).all():
        ids = ids.astype(np.int64)
    if ids.dtype.kind not in "iuUTO" or any(
        item is None for item in ids.flat if ids.dtype == object
    ):
        raise DataError(f"ids must be strings or whole numbers, got {ids.dtype}")
    return ids.astype(STRING)


def check_unique(ids: np.ndarray) -> None:
    """Refuse ids that name two rows, naming the first such id."""
    order = np.argsort(ids, kind="stable")
    same = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if same.size:
        at = same[order[same + 1].argmin()]
        first, second = order[at], order[at + 1]
        raise DataError(f"id {str(ids[first])!r} names rows {first} and {second}; ids must differ")


def write_ids(group: zarr.Group, ids, n: int) -> None:
    """Store the names of all n rows at once."""
    names = as_ids(ids)
    if len(names) != n:
        raise DataError(f"{len(names)} ids were given for {n} rows")
    check_unique(names)
    if "ids" in group:  # damaged ones of a killed writer
        del group["ids"]
    column = Column.create(group, "ids", STRING, rows=min(n, NAMES_PER_BLOCK))
    column.append(names)
    column.finish()


def has_ids(group: zarr.Group, ids) -> bool:
    """Whether these names of the rows are stored, and can be read."""
    try:
        stored = read_ids(group)
    except StoreError:
        return False
    return stored is not None and np.array_equal(stored, schema.as_text(as_ids(ids)))


def read_ids(group: zarr.Group) -> np.ndarray | None:
    """Names of the rows, (n,) numpy strings, or None if the store has none."""
    if not isinstance(group.get("ids"), zarr.Array):
        return None
    return schema.as_text(schema.read(schema.member(group, "ids")))
