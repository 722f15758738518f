"""Matrices larger than memory: tiles of a matrix store, each written whole by one task."""

import functools
from collections.abc import Callable

import numpy as np

from dforest.errors import DataError
from dforest.methods.asked import Asked, answer
from dforest.methods.material import Held, Mapped, digest_of, within_reach
from dforest.run.client import preflight, versions
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.passes import Part, Pass
from dforest.store.matrix import MatrixStore, MatrixWriter
from dforest.store.tiles import TILE, Symmetry

MOST_TILES = 16  # of a task: tiles that are cheap to compute go together, so that Dask costs little
FEWEST_TASKS = 64  # of a matrix, where it has as many tiles: the last ones leave no worker idle

Compute = Callable[[slice, slice], np.ndarray]


def write_matrix(
    path,
    shape: tuple[int, int],
    compute: Compute,
    runner: Here | Cluster,
    *,
    name: str,
    fingerprint: str,
    symmetric: Symmetry = "upper",
    ids=None,
    tile: int = TILE,
) -> MatrixStore:
    """Compute a matrix tile by tile into a store, which appears whole or not at all.

    Parameters
    ----------
    compute : callable, (rows, columns) -> (rows, columns) float32
        Two slices in, their tile out. It travels to workers: a partial over paths and small facts.
        For a symmetric matrix it is asked for tiles with row block <= column block only.
    name : str
        Of the pass.
    fingerprint : str
        Of all that decides the values, but for versions, which are added: when a writer of the same
        work was stopped, the tiles that it finished are kept.
    symmetric, ids, tile
        As `dforest.store.matrix.MatrixWriter` takes them.
    """
    work = f"{fingerprint} {versions()}"
    writer = MatrixWriter(path, shape, tile, symmetric, ids=ids, resume=work)
    try:
        if isinstance(runner, Cluster):
            preflight(runner.client, writer.folder.parent)
        step = functools.partial(_write_tiles, compute=compute, writer=writer)
        size = functools.partial(_n_bytes, writer=writer)
        job = Pass(name, step, [[block] for block in tile_blocks(writer.missing())], bytes_of=size)
        for _ in runner.run(job):
            pass
        writer.publish()
    except DataError:  # doing it again would end in the same way
        writer.close()
        raise
    finally:
        writer.close(keep=True)
    return MatrixStore(path)


def tile_blocks(tiles: list[tuple[int, int]]) -> list[tuple[tuple[int, int], ...]]:
    """Tiles of each task, neighbours together.

    >>> [len(block) for block in tile_blocks([(0, b) for b in range(130)])][:3]
    [2, 2, 2]
    """
    size = min(max(1, len(tiles) // FEWEST_TASKS), MOST_TILES)
    return [tuple(tiles[i : i + size]) for i in range(0, len(tiles), size)]


def _write_tiles(block, *, compute: Compute, writer: MatrixWriter) -> Part:
    """Task: compute some tiles, and write each whole."""
    for a, b in block:
        writer.write_tile(a, b, compute(*writer.span(a, b)))
    return {"n_tiles": np.array([len(block)])}


def _n_bytes(block, writer: MatrixWriter) -> int:
    spans = (writer.span(a, b) for a, b in block)
    return sum(4 * (r.stop - r.start) * (c.stop - c.start) for r, c in spans)


def stream_pairwise(
    asked: Asked, path, runner: Here | Cluster, *, symmetric: Symmetry | None = None, ids=None,
    tile: int = TILE,
) -> MatrixStore:  # fmt: skip
    """Write learned distances to a store; what a stopped run of the same work did is kept.

    Those of one set of rows are symmetric, stored as "upper" unless "full" is asked for.
    """
    layout = (symmetric or "upper") if asked.others is None else "none"
    with within_reach(asked, runner) as source:
        return write_matrix(
            path, asked.shape, functools.partial(_answer, source=source), runner,
            name="write-pairs", fingerprint=digest_of(asked), symmetric=layout, ids=ids, tile=tile,
        )  # fmt: skip


def _answer(rows: slice, columns: slice, *, source: Held[Asked] | Mapped[Asked]) -> np.ndarray:
    """Task: answer one tile."""
    return answer(source.open(), rows, columns).mean.astype(np.float32)
