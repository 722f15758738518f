"""The points of a dataset: rows of features, dense or sparse, read and appended block by block."""

import numpy as np
import zarr
from scipy import sparse

from dforest.errors import DataError
from dforest.store import schema
from dforest.store.columns import Column

BLOCK_BYTES = 4 * 2**20
MAX_BLOCK_ROWS = 2**16
SPARSE_BLOCK = 2**19  # stored values of a sparse block


class Points:
    """Stored points, (n_rows, n_features) float32 or float64; a scipy CSR array where sparse."""

    def __init__(self, group: zarr.Group):
        said = schema.facts(group)
        self.shape = int(said["n_rows"]), int(said["n_features"])
        self.is_sparse = bool(said["is_sparse"])
        self.block_rows = int(said["block_rows"])
        self.dtype = np.dtype(said["dtype"])
        if self.is_sparse:
            self._data = schema.member(group, "data")
            self._indices = schema.member(group, "indices")
            self._indptr = schema.member(group, "indptr")
        else:
            self._points = schema.member(group, "points")

    @property
    def nbytes(self) -> int:
        """Bytes of all points in memory; nothing is read."""
        parts = [self._data, self._indices, self._indptr] if self.is_sparse else [self._points]
        return sum(part.nbytes for part in parts)

    def row_blocks(self) -> list[slice]:
        """Rows of each stored block, in order: reading by these touches every block once."""
        n, step = self.shape[0], self.block_rows
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def read(self, start: int = 0, stop: int | None = None):
        """Read rows start..stop - 1: (rows, n_features), ndarray or CSR array.

        Raises
        ------
        StoreError
            If a block of these rows is missing or damaged.
        """
        start, stop, _ = slice(start, stop).indices(self.shape[0])
        if not self.is_sparse:
            return schema.read(self._points, slice(start, max(start, stop)))
        indptr = schema.read(self._indptr, slice(start, max(start, stop) + 1))
        held = slice(int(indptr[0]), int(indptr[-1]))
        data, indices = schema.read(self._data, held), schema.read(self._indices, held)
        shape = len(indptr) - 1, self.shape[1]
        return sparse.csr_array((data, indices, indptr - indptr[0]), shape=shape)

    def take(self, rows):
        """Read some rows, in the order given: (len(rows), n_features)."""
        rows = np.asarray(rows, dtype=np.int64)
        if not self.is_sparse:
            return schema.read(self._points, rows)
        parts = [self.read(row, row + 1) for row in rows]
        return sparse.vstack(parts, format="csr") if parts else self.read(0, 0)


class DensePoints:
    """Append dense rows."""

    def __init__(self, group: zarr.Group, n_features: int, dtype, block_rows: int | None = None):
        if "points" in group:
            self.points = Column(schema.open_array(schema.folder_of(group), "points"))
        else:
            rows = block_rows or block_rows_for(n_features * np.dtype(dtype).itemsize)
            self.points = Column.create(group, "points", dtype, (n_features,), rows=rows)
        self.block_rows = self.points.rows

    def append(self, values: np.ndarray) -> None:
        """Add (rows, n_features)."""
        self.points.append(values)

    def finish(self) -> None:
        """Write what is held."""
        self.points.finish()


class SparsePoints:
    """Append sparse rows as the three arrays of a CSR matrix."""

    def __init__(self, group: zarr.Group, n_features: int, dtype, block_rows: int | None = None):
        self.block_rows = block_rows or MAX_BLOCK_ROWS
        names = {"data": dtype, "indices": np.int32, "indptr": np.int64}
        if n_features > np.iinfo(np.int32).max:
            names["indices"] = np.int64
        if "indptr" in group:
            self.columns = {k: Column(schema.open_array(schema.folder_of(group), k)) for k in names}
        else:
            self.columns = {
                k: Column.create(group, k, dtype, rows=SPARSE_BLOCK) for k, dtype in names.items()
            }
            self.columns["indptr"].append(np.zeros(1, np.int64))

    def append(self, values) -> None:
        """Add a CSR matrix of (rows, n_features)."""
        values = values.sorted_indices()
        end = self.columns["data"].n_rows
        self.columns["data"].append(values.data)
        self.columns["indices"].append(values.indices)
        self.columns["indptr"].append(end + values.indptr[1:].astype(np.int64))

    def finish(self) -> None:
        """Write what is held."""
        for column in self.columns.values():
            column.finish()


def block_rows_for(row_bytes: int) -> int:
    """Rows of a stored block of about 4 MB."""
    return int(np.clip(BLOCK_BYTES // max(1, row_bytes), 1, MAX_BLOCK_ROWS))


def as_points(values, dtype, first_row: int):
    """Rows in the stored dtype: C-contiguous ndarray or CSR; refuses what it cannot hold."""
    is_sparse = sparse.issparse(values)
    values = sparse.csr_array(values) if is_sparse else np.asarray(values)
    if values.ndim != 2:
        raise DataError(f"points must have 2 dimensions (rows, features), got shape {values.shape}")
    if values.dtype.kind not in "fiub":
        raise DataError(f"points must be numbers, got {values.dtype}")
    with np.errstate(over="ignore"):
        cast = values.astype(dtype)
    given, kept = (values.data, cast.data) if is_sparse else (values, cast)
    lost = np.isinf(kept) & np.isfinite(given)
    if lost.any():
        row, column = (first_row, "?") if is_sparse else np.argwhere(lost)[0] + (first_row, 0)
        raise DataError(
            f"row {row}, feature {column}: {given[lost][0]:g} is beyond {np.dtype(dtype)}; "
            "ask for dtype='float64'"
        )
    return cast if is_sparse else np.ascontiguousarray(cast)
