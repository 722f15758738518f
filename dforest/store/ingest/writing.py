"""From sources to stores, block by block."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from dforest.arrays.distances import TOLERANCE
from dforest.errors import DataError, SpecError
from dforest.store import tiles
from dforest.store.columns import as_ids
from dforest.store.dataset import Dataset, DatasetWriter
from dforest.store.ingest.tables import Block, Source
from dforest.store.matrix import MatrixWriter
from dforest.store.points import as_points

Progress = Callable[[int, int | None], Any]
MIN_TILE = 64
BAND_BYTES = 256 * 2**20  # of a band of rows of a matrix, held while its tiles are written


def write_points(source: Source, path, dtype: str, progress: Progress) -> int:
    """Write a new dataset; return the number of its rows."""
    names, responses = source.feature_names, source.response_names
    with DatasetWriter(path, dtype=dtype, feature_names=names, response_names=responses) as writer:
        for block in source.blocks:
            _write(writer, block)
            progress(block.done, block.total)
        writer.publish()
        return writer.n_rows


def update_points(source: Source, path, progress: Progress) -> int:
    """Append the rows whose ids are new; return their number.

    Rows that are stored already must be as they are stored, or the source is refused: their
    distances and embeddings were made from what is stored.
    """
    with DatasetWriter(path, update=True) as writer:
        stored = Dataset(path)
        known = _known(stored)
        before = writer.n_rows
        for block in source.blocks:
            block = _in_stored_order(source, stored, block)
            if block.ids is None:
                raise SpecError(
                    f"{path}: an update finds new rows by their ids; name the id_column"
                )
            rows = np.array([known["ids"].get(name, -1) for name in as_ids(block.ids).tolist()])
            _compare(stored, known, block, rows)
            new = np.flatnonzero(rows < 0)
            if new.size:
                _write(writer, _take(block, new))
            progress(block.done, block.total)
        if writer.n_rows > before:
            writer.publish()
        return writer.n_rows - before


def _write(writer: DatasetWriter, block: Block) -> None:
    writer.write(block.points, ids=block.ids, labels=block.labels, response=block.response)


def _take(block: Block, rows) -> Block:
    points, ids, labels, response = (None if part is None else part[rows] for part in block[:4])
    return Block(points, ids, labels, response, block.done, block.total)


def _known(stored: Dataset) -> dict:
    ids, labels = stored.ids, stored.labels
    if ids is None:
        raise SpecError(
            f"{stored.path} was stored without ids and cannot be updated; ingest it anew"
        )
    return {
        "ids": {name: row for row, name in enumerate(ids.tolist())},
        "labels": None if labels is None else labels.astype(str),
        "response": stored.response,
    }


def _in_stored_order(source: Source, stored: Dataset, block: Block) -> Block:
    """Features by name in the stored order; columns more or fewer are refused."""
    names, wanted = source.feature_names, stored.feature_names
    if names is None or wanted is None or tuple(names) == wanted:
        return block
    odd = sorted(set(names) ^ set(wanted))
    if odd:
        where = "the source" if odd[0] in names else "the store"
        raise DataError(f"{stored.path}: feature {odd[0]!r} is only in {where}; both need the same")
    return block._replace(points=block.points[:, [names.index(name) for name in wanted]])


def _compare(stored: Dataset, known: dict, block: Block, rows: np.ndarray) -> None:
    at = np.flatnonzero(rows >= 0)
    if not at.size:
        return
    old, places = _take(block, at), rows[at]
    order = np.argsort(places)
    mine = as_points(old.points, stored.points.dtype, 0)[order]
    theirs = stored.points.take(places[order])
    changed = np.zeros(len(at), bool)
    changed[order] = _rows_differ(mine, theirs)
    if known["labels"] is not None and old.labels is not None:
        changed |= np.asarray(old.labels).astype(str) != known["labels"][places]
    if known["response"] is not None and old.response is not None:
        changed |= _rows_differ(np.asarray(old.response, float), known["response"][places])
    if changed.any():
        name = as_ids(old.ids)[changed.argmax()]
        raise DataError(
            f"{stored.path}: row {str(name)!r} is not as it is stored ({changed.sum()} such rows); "
            "an update only adds rows, so ingest without update to write the store anew"
        )


def _rows_differ(a, b) -> np.ndarray:
    if sparse.issparse(a):
        gap = (a.sorted_indices() - b.sorted_indices()).tocsr()
        return np.asarray(abs(gap).max(axis=1).todense()).ravel() > 0
    return ~((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)


def write_matrix(
    rows: Iterable[np.ndarray], n: int, path, ids, symmetric, progress: Progress
) -> None:
    """Write a symmetric matrix from its rows, reading each once.

    The upper tiles of a band of rows are written; its lower tiles are compared with the upper ones
    that were written before, read back one at a time.
    """
    tile = int(np.clip(BAND_BYTES // (4 * n), MIN_TILE, tiles.TILE))
    with MatrixWriter(path, n, min(tile, n), symmetric, ids=ids) as writer:
        worst, largest = (0.0, 0, 0, 0.0, 0.0), 0.0
        start = 0
        for band in _bands(rows, n, writer.tile):
            a = start // writer.tile
            largest = max(largest, float(np.nanmax(np.abs(band), initial=0.0)))
            for b in range(-(-n // writer.tile)):
                down, across = writer.span(a, b)
                part = np.ascontiguousarray(band[:, across])
                mirrored = part.T if b == a else writer.read_tile(b, a).T if b < a else part
                gap, i, j = tiles.worst_asymmetry(part, mirrored)
                if gap > worst[0]:
                    place = down.start + i, across.start + j
                    worst = gap, *place, float(part[i, j]), float(mirrored[i, j])
                if b == a:
                    part = np.triu(part) + np.triu(part, 1).T
                if b >= a:
                    writer.write_tile(a, b, part)
            start += len(band)
            progress(start, n)
        if worst[0] > TOLERANCE * largest:
            raise tiles.asymmetric(*worst[1:])
        writer.publish()


def _bands(rows: Iterable[np.ndarray], n: int, tile: int) -> Iterator[np.ndarray]:
    """Rows gathered to bands of one tile's height, float32."""
    band, held, seen = np.empty((tile, n), np.float32), 0, 0
    for part in rows:
        part = _as_float32(part, n, seen)
        seen += len(part)
        if seen > n:
            raise DataError(f"the matrix has {n} columns but more rows; it must be square")
        while len(part):
            fits = min(tile - held, len(part))
            band[held : held + fits] = part[:fits]
            part, held = part[fits:], held + fits
            if held == tile:
                yield band
                held = 0
    if seen < n:
        raise DataError(f"the matrix has {n} columns but {seen} rows; it must be square")
    if held:
        yield band[:held]


def _as_float32(part: np.ndarray, n: int, first: int) -> np.ndarray:
    if part.ndim != 2 or part.shape[1] != n or part.dtype.kind not in "fiub":
        raise DataError(f"row {first}: expected {n} numbers, got {part.dtype} {part.shape[1:]}")
    with np.errstate(over="ignore"):
        values = part.astype(np.float32)
    bad = np.isinf(values)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise DataError(
            f"distance ({first + i}, {j}) = {part[i, j]:g} is beyond float32; a distance is a "
            "finite number, or NaN where it is unknown"
        )
    return values
