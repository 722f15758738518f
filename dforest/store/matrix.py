"""Distance matrices larger than memory: square tiles, each written by one task."""

import json
import os
import pathlib
import uuid
from collections.abc import Iterable, Iterator

import numpy as np

from dforest.arrays.distances import TOLERANCE
from dforest.errors import DataError, SpecError, StoreError
from dforest.store import schema, tiles
from dforest.store.columns import has_ids, read_ids, write_ids
from dforest.store.disk import writing
from dforest.store.staging import Staging


class MatrixStore:
    """A stored distance matrix, read as if it were whole: ``store[rows, columns]``.

    Parameters
    ----------
    path : path-like
    generation : str, optional
        See `dforest.store.schema.open_group`.

    Attributes
    ----------
    n_rows, n_columns : int
    tile : int
        Rows and columns of a tile; tiles at the right and lower edge are smaller.
    symmetric : {"upper", "full", "none"}
        Whether only tiles with row block <= column block are stored, or all of a symmetric matrix,
        or all of any matrix.
    largest : float
        Largest known |z|.
    has_unknown : bool
        Whether some z is NaN.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/z"
    >>> x = np.arange(5, dtype=np.float32)
    >>> with MatrixWriter(path, 5, tile=2) as writer:
    ...     for a, b in writer.tiles():
    ...         rows, columns = writer.span(a, b)
    ...         _ = writer.write_tile(a, b, abs(x[rows, None] - x[columns]))
    ...     _ = writer.publish()
    >>> MatrixStore(path)[3:, [0, 4]]
    array([[3., 1.],
           [4., 0.]], dtype=float32)
    """

    def __init__(self, path, generation: str | None = None):
        self.path = pathlib.Path(path).absolute()
        self._group = schema.open_group(path, "matrix", generation)
        said = schema.facts(self._group)
        self.generation = schema.folder_of(self._group).name
        self.n_rows, self.n_columns = int(said["n_rows"]), int(said["n_columns"])
        self.tile, self.symmetric = int(said["tile"]), str(said["symmetric"])
        self.largest, self.has_unknown = float(said["largest"]), bool(said["has_unknown"])
        self._z = schema.member(self._group, "z")

    def __reduce__(self):
        return MatrixStore, (str(self.path), self.generation)

    def __repr__(self):
        return f"MatrixStore({str(self.path)!r})"

    @property
    def shape(self) -> tuple[int, int]:
        """(n_rows, n_columns)."""
        return self.n_rows, self.n_columns

    @property
    def dtype(self) -> np.dtype:
        """float32."""
        return np.dtype(np.float32)

    @property
    def ids(self) -> np.ndarray | None:
        """Names of the rows, (n_rows,) strings, or None."""
        return read_ids(self._group)

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Yield the (row block, column block) that say everything: the upper ones if symmetric."""
        return tiles.numbers(self.shape, self.tile, self.symmetric)

    def span(self, a: int, b: int) -> tuple[slice, slice]:
        """Rows and columns of a tile."""
        return tiles.span(self.shape, self.tile, a, b)

    def read_tile(self, a: int, b: int) -> np.ndarray:
        """Read one tile, (tile, tile) float32, smaller at the edges; any (a, b), mirrored.

        Raises
        ------
        StoreError
            If the tile is missing or damaged; a hole never reads as distances.
        """
        if self.symmetric == "upper" and a > b:
            return self.read_tile(b, a).T
        return schema.read(self._z, self.span(a, b))

    def __getitem__(self, key) -> np.ndarray:
        """Part of the matrix, in memory: slices, ints, masks or arrays of rows and of columns.

        Two arrays select the rows *and* the columns, as ``z[np.ix_(rows, columns)]`` does.
        """
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        across, down = _wanted(columns, self.n_columns), _wanted(rows, self.n_rows)
        out = np.empty((len(down), len(across)), np.float32)
        parts = {axis: _by_block(index, self.tile) for axis, index in enumerate((down, across))}
        seen: set[tuple[int, int]] = set()
        for a in parts[0]:
            for b in parts[1]:
                if (a, b) in seen:
                    continue
                tile = self.read_tile(a, b)
                _place(out, tile, parts[0][a], parts[1][b])
                mirrored = self.symmetric != "none" and a != b and b in parts[0] and a in parts[1]
                if mirrored:  # read each stored tile once
                    _place(out, tile.T, parts[0][b], parts[1][a])
                    seen.add((b, a))
        return out[tuple(0 if np.ndim(k) == 0 and not isinstance(k, slice) else slice(None)
                         for k in (rows, columns))]  # fmt: skip

    def __array__(self, dtype=None, copy=None):
        return self[:, :].astype(dtype or np.float32, copy=False)


class MatrixWriter:
    """Write a matrix tile by tile, from any number of processes; publish it whole.

    The writer that was constructed holds the path's lock and publishes. Its pickled copies write
    tiles: each tile has one owner, who gets a receipt that is also kept in the staging folder.

    Parameters
    ----------
    path : path-like
    n : int or (int, int)
        Rows of a square matrix, or (rows, columns) of any matrix.
    tile : int
        Rows and columns of a tile.
    symmetric : {"upper", "full", "none"}
        "upper" stores tiles with row block <= column block and mirrors when reading; "full" also
        stores their transposes (twice the space, rows read faster), written by the same owner.
        Both are given the upper tiles only. "none" is given every tile of any matrix.
    ids : (n,) strings or integers, optional
        Names of the rows.
    resume : str, optional
        Fingerprint of the work; tiles that a killed writer of the same work finished are kept,
        after reading each once.
    """

    def __init__(
        self,
        path,
        n,
        tile: int = tiles.TILE,
        symmetric: tiles.Symmetry = "upper",
        *,
        ids=None,
        resume: str | None = None,
    ):
        self.shape = (int(n), int(n)) if np.ndim(n) == 0 else (int(n[0]), int(n[1]))
        self.tile, self.symmetric = int(tile), symmetric
        tiles.check_layout(path, self.shape, self.tile, symmetric)
        layout = {"shape": self.shape, "tile": self.tile, "symmetric": symmetric}
        names = None if ids is None else np.asarray(ids).astype(str).tolist()
        mark = None if resume is None else json.dumps([resume, layout, names])
        self._staging: Staging | None = Staging(path, "matrix", resume=mark)
        self.folder, self._receipts = self._staging.folder, self._staging.notes
        try:
            group = self._staging.group
            if self._staging.resumed:
                self._recheck()
            else:
                schema.create_array(group, "z", self.shape, np.float32, (self.tile, self.tile))
            if ids is not None and not has_ids(group, ids):
                write_ids(group, ids, self.shape[0])
            self._staging.begun()
        except BaseException:
            self.close(keep=self._staging.resumed)
            raise

    def __getstate__(self):
        return vars(self) | {"_staging": None}

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Yield the (row block, column block) of the tiles that must be written."""
        return tiles.numbers(self.shape, self.tile, self.symmetric)

    def missing(self) -> list[tuple[int, int]]:
        """Tiles that have no receipt yet."""
        done = {file.stem for file in self._receipts.glob("*.json")}
        return [(a, b) for a, b in self.tiles() if f"{a}-{b}" not in done]

    def span(self, a: int, b: int) -> tuple[slice, slice]:
        """Rows and columns of a tile."""
        return tiles.span(self.shape, self.tile, a, b)

    def write_tile(self, a: int, b: int, array: np.ndarray) -> dict:
        """Write one tile and return its receipt (plain facts: block, bytes, largest, unknown).

        Parameters
        ----------
        a, b : int
            Row block and column block, as in `tiles`.
        array : (rows, columns) float32
            NaN where the distance is unknown. A tile on the diagonal of a symmetric matrix must be
            symmetric up to rounding; its upper triangle is what is stored.

        Raises
        ------
        DataError
            If the shape, the dtype or a value is not what this tile can hold.
        """
        array = self._checked(a, b, np.asarray(array))
        z = schema.open_array(self.folder, "z")
        for place in self._places(a, b):
            schema.write_block(z, place, array if place == (a, b) else array.T.copy())
        receipt = self._receipt(z, a, b, array)
        partial = self._receipts / f"{uuid.uuid4().hex}.partial"
        with writing(f"{schema.place_of(z)}: receipt of tile ({a}, {b})"):
            partial.write_text(json.dumps(receipt))
            os.replace(partial, self._receipts / f"{a}-{b}.json")
        return receipt

    def _places(self, a: int, b: int) -> list[tuple[int, int]]:
        """Blocks in which a tile is stored."""
        return [(a, b), (b, a)] if self.symmetric == "full" and a != b else [(a, b)]

    def _receipt(self, z, a: int, b: int, array: np.ndarray) -> dict:
        places = self._places(a, b)
        known = np.abs(array[~np.isnan(array)])
        return {
            "block": [a, b],
            "files": {f"{c}-{d}": schema.block_file(z, (c, d)).stat().st_size for c, d in places},
            "largest": float(known.max(initial=0.0)),
            "unknown": int(array.size - known.size),
        }

    def _recheck(self) -> None:
        """Read what a killed writer left; a tile that is not what its receipt says is missing."""
        z = schema.open_array(self.folder, "z")
        for a, b in set(self.tiles()) - set(self.missing()):
            file = self._receipts / f"{a}-{b}.json"
            try:
                tile, *mirrored = (schema.read_block(z, place) for place in self._places(a, b))
                is_sound = self._receipt(z, a, b, tile) == json.loads(file.read_text())
                is_sound &= all(np.array_equal(m.T, tile, equal_nan=True) for m in mirrored)
            except (StoreError, ValueError):
                is_sound = False
            if not is_sound:
                file.unlink()

    def read_tile(self, a: int, b: int) -> np.ndarray:
        """Read back a tile that was written."""
        return schema.read(schema.open_array(self.folder, "z"), self.span(a, b))

    def publish(self, receipts: Iterable[dict] = (), **facts) -> pathlib.Path:
        """Make the matrix readable at its path, in one step; every tile must have its receipt.

        Parameters
        ----------
        receipts : iterable of dict, optional
            Those that came back from tasks, compared with the ones in the staging folder.

        Raises
        ------
        StoreError
            If a tile was not written, or is not on disk as its receipt says.
        """
        if self._staging is None:
            raise SpecError("only the process that made a MatrixWriter can publish it")
        missing = self.missing()
        if missing:
            raise StoreError(
                f"{self._staging.path}: {len(missing):,} tiles have not been written, the first is "
                f"{missing[0]}; write them before publishing"
            )
        kept = [json.loads(file.read_text()) for file in sorted(self._receipts.glob("*.json"))]
        z = schema.open_array(self.folder, "z")
        for receipt in [*kept, *receipts]:
            self._confirm(z, receipt)
        return self._staging.publish(
            n_rows=self.shape[0], n_columns=self.shape[1], tile=self.tile, symmetric=self.symmetric,
            largest=max(receipt["largest"] for receipt in kept),
            has_unknown=any(receipt["unknown"] for receipt in kept), **facts,
        )  # fmt: skip

    def close(self, *, keep: bool = False) -> None:
        """Give up what is not published; ``keep=True`` leaves it to a writer that resumes."""
        if self._staging is not None:
            self._staging.close(keep=keep)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _confirm(self, z, receipt: dict) -> None:
        for name, size in receipt["files"].items():
            block = tuple(map(int, name.split("-")))
            file = schema.block_file(z, block)
            found = file.stat().st_size if file.exists() else 0
            if found != size:
                raise StoreError(
                    f"{schema.place_of(z)}: array 'z', block {block} has {found:,} bytes, its "
                    f"receipt says {size:,}; write it again"
                )

    def _checked(self, a: int, b: int, array: np.ndarray) -> np.ndarray:
        if self.symmetric != "none" and a > b:
            raise DataError(
                f"tile ({a}, {b}) lies below the diagonal; a symmetric matrix is given tile "
                f"({b}, {a}), which is mirrored"
            )
        rows, columns = self.span(a, b)
        wanted = rows.stop - rows.start, columns.stop - columns.start
        if array.shape != wanted or array.dtype != np.float32:
            raise DataError(
                f"tile ({a}, {b}) holds {wanted} float32, got {array.shape} {array.dtype}"
            )
        if np.isinf(array).any():
            i, j = np.argwhere(np.isinf(array))[0]
            raise DataError(
                f"distance ({rows.start + i}, {columns.start + j}) is infinite; "
                "a distance is finite, or NaN where it is unknown"
            )
        if self.symmetric != "none" and a == b:
            worst, i, j = tiles.worst_asymmetry(array, array.T)
            if worst > TOLERANCE * np.abs(array[~np.isnan(array)]).max(initial=0.0):
                raise tiles.asymmetric(rows.start + i, rows.start + j, array[i, j], array[j, i])
            array = np.triu(array) + np.triu(array, 1).T
        return np.ascontiguousarray(array)


def _wanted(key, side: int) -> np.ndarray:
    """Row or column numbers of a key."""
    axis = schema.as_axis(key, side)
    return np.arange(axis.start, axis.stop) if isinstance(axis, slice) else axis


def _by_block(index: np.ndarray, tile: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For each block: where its rows go in the answer, and where they are in the tile."""
    order = np.argsort(index // tile, kind="stable")
    blocks, starts = np.unique(index[order] // tile, return_index=True)
    places = np.split(order, starts[1:])
    return {int(k): (at, index[at] - k * tile) for k, at in zip(blocks, places)}


def _place(out: np.ndarray, tile: np.ndarray, rows, columns) -> None:
    out[np.ix_(rows[0], columns[0])] = tile[np.ix_(rows[1], columns[1])]
