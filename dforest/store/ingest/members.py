"""numpy's files as sources: ``.npy``, and the members of ``.npz``, dense or sparse.

An ``.npz`` holds arrays by name. A sparse matrix ``X`` is written in one as the four members
``X_data``, ``X_indices``, ``X_indptr`` and ``X_shape``, or as the whole file by
`scipy.sparse.save_npz`. What `ingest` calls columns are members here: ``key="X"`` names the points,
``id_column="ids"`` and ``label_column="labels"`` name vectors of the same length.
"""

import pathlib
import zipfile
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from dforest.errors import DataError, SpecError, StoreError
from dforest.store.ingest.tables import Block, Columns, Source
from dforest.store.points import block_rows_for

SCIPY = {"data", "shape", "format"}
CSR = ("_data", "_indices", "_indptr", "_shape")


class Members:
    """Arrays of a ``.npy`` or ``.npz`` file by name; a ``.npy`` has one, of the empty name."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            self._file = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise StoreError(f"{self.path} cannot be read as numpy's: {error}") from None
        self.is_archive = isinstance(self._file, np.lib.npyio.NpzFile)
        files = self._file.files if self.is_archive else [""]
        self.is_scipy = set(files) >= SCIPY
        stems = [name.removesuffix("_data") for name in files if name.endswith("_data")]
        self.sparse = [stem for stem in stems if all(stem + end in files for end in CSR)]
        parts = {stem + end for stem in self.sparse for end in CSR}
        self.names = [name for name in files if name not in parts] + self.sparse

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.is_archive:
            self._file.close()

    def choose(self, key: str | None) -> str:
        """Return the member that is meant: the one named, or the only table there is."""
        if key is not None and not self.is_archive:
            raise SpecError(f"{self.path} holds one array; key={key!r} is for .npz files")
        if key is not None:
            return self.known(key)
        if self.is_scipy or not self.is_archive:
            return ""
        tables = [name for name in self.names if name in self.sparse or len(self.shape(name)) == 2]
        if len(tables) != 1:
            known = ", ".join(map(repr, tables or self.names))
            raise SpecError(
                f"{self.path} holds {known}; name the one to ingest, as key={known[:20]}"
            )
        return tables[0]

    def known(self, name: str) -> str:
        """Return the name of a member, or say which there are."""
        if name not in self.names:
            known = ", ".join(map(repr, self.names))
            raise SpecError(f"{self.path} has no member {name!r}; it has {known}")
        return name

    def is_sparse(self, name: str) -> bool:
        """Whether a member is a sparse matrix."""
        return self.is_scipy or name in self.sparse

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a member, read from its header."""
        if self.is_scipy:
            return tuple(self.vector("shape").tolist())
        if name in self.sparse:
            return tuple(self.vector(f"{name}_shape").tolist())
        if not self.is_archive:
            return self._file.shape
        with self._file.zip.open(f"{name}.npy") as stream:
            return _header(stream)[0]

    def column(self, name: str | None) -> np.ndarray | None:
        """Read a member that a caller named, or None."""
        return None if name is None else self.vector(self.known(name))

    def vector(self, name: str) -> np.ndarray:
        """Read a member whole."""
        try:
            return self._file[name] if self.is_archive else np.asarray(self._file)
        except (ValueError, zipfile.BadZipFile) as error:
            raise DataError(f"{self.path}: member {name!r} cannot be read: {error}") from None

    def csr(self, name: str) -> sparse.csr_array:
        """Read a sparse member whole."""
        if self.is_scipy:
            return sparse.csr_array(sparse.load_npz(self.path))
        data, indices, indptr, shape = (self.vector(name + end) for end in CSR)
        return sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))

    def rows(self, name: str, step: int) -> Iterator[np.ndarray]:
        """Yield a dense member by ``step`` rows: mapped from a .npy, streamed from a .npz."""
        if not self.is_archive:
            yield from (self._file[at : at + step] for at in range(0, len(self._file), step))
            return
        with self._file.zip.open(f"{name}.npy") as stream:
            shape, by_columns, dtype = _header(stream)
            if by_columns or dtype.hasobject:
                whole = self.vector(name)
                yield from (whole[at : at + step] for at in range(0, len(whole), step))
                return
            row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
            for at in range(0, shape[0], step):
                n = min(step, shape[0] - at)
                data = stream.read(n * row_bytes)
                if len(data) != n * row_bytes:
                    raise StoreError(f"{self.path}: member {name!r} ends at row {at}")
                yield np.frombuffer(data, dtype).reshape(n, *shape[1:])


def _header(stream) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def read_points(members: Members, name: str, columns: Columns) -> Source:
    """Points of one member, with ids, labels and responses from others."""
    shape = members.shape(name)
    if len(shape) != 2:
        raise DataError(f"{members.path}: points must have 2 dimensions, got shape {shape}")
    if columns.feature_columns is not None:
        raise SpecError(f"{members.path}: feature_columns need named columns, which .npy has not")
    used = [columns.id_column, columns.label_column, *columns.response_columns]
    vectors = {n: members.vector(members.known(n)) for n in used if n is not None}
    for vector_name, vector in vectors.items():
        if vector.ndim not in (1, 2) or len(vector) != shape[0]:
            raise DataError(
                f"{members.path}: {vector_name!r} has shape {vector.shape}, the points have "
                f"{shape[0]} rows"
            )
    response_names = [
        label if vectors[label].ndim == 1 else f"{label}_{at}"
        for label in columns.response_columns
        for at in range(1 if vectors[label].ndim == 1 else vectors[label].shape[1])
    ]
    return Source(None, response_names or None, _blocks(members, name, shape, vectors, columns))


def _blocks(members: Members, name, shape, vectors: dict, columns: Columns) -> Iterator[Block]:
    step = block_rows_for(8 * shape[1])
    parts: Iterator
    if members.is_sparse(name):
        whole = members.csr(name)
        parts = (whole[at : at + step] for at in range(0, shape[0], step))
    else:
        parts = members.rows(name, step)
    start = 0
    for part in parts:
        stop = start + part.shape[0]
        ids, labels = (
            None if n is None else vectors[n][start:stop]
            for n in (columns.id_column, columns.label_column)
        )
        response = [
            vectors[n][start:stop].reshape(stop - start, -1) for n in columns.response_columns
        ]
        yield Block(part, ids, labels, np.hstack(response) if response else None, stop, shape[0])
        start = stop
