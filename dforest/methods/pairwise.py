"""Matrices of distances between given objects: in memory, or tile by tile into a store."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dforest.distances.pairwise import Called, Measure
from dforest.distances.vectors import SIDE
from dforest.errors import SpecError
from dforest.methods.material import digest_of, features_of, flat_features, within_reach
from dforest.methods.model import under
from dforest.methods.tiles import tile_blocks, write_matrix
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.memory import memory_bytes
from dforest.run.passes import Pass
from dforest.run.travel import check_travels
from dforest.store import tiles
from dforest.store.matrix import MatrixStore

PIECE_BYTES = 1 << 23  # of rows that are dense at once
HELD_TILE = 512  # rows of a tile in memory: 2 MiB
CALLED_TILE = 256  # rows of a tile by a Python callable: some seconds of calls, not minutes
WRITING = 24 << 20  # bytes that writing a tile takes beside it: measured, for tiles of any size
PAIR_BYTES = 32  # of a task for each pair of a tile: float64 and float32, checked and compressed
MIRROR = 128  # side of the squares that are turned over at once: they stay in a core's own cache


@dataclass(frozen=True)
class Sides:
    """Rows to compare: all of one set with each other, or with those of another set."""

    ones: Any  # (a, p) float32 or float64 ndarray, or CSR
    others: Any = None  # (b, p); None for ``ones``

    @property
    def shape(self) -> tuple[int, int]:
        """(a, b)."""
        return self.ones.shape[0], self.columns.shape[0]

    @property
    def columns(self) -> Any:
        """The rows that the columns of the matrix stand for."""
        return self.ones if self.others is None else self.others

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        named = {"ones": self.ones} | ({} if self.others is None else {"others": self.others})
        arrays = {
            f"{side}.{name}": array
            for side, X in named.items()
            for name, array in flat_features(X).items()
        }
        return arrays, {}

    @classmethod
    def from_flat(cls, arrays, facts) -> "Sides":
        """Put together again."""
        others = under("others.", arrays)
        return cls(features_of(under("ones.", arrays)), features_of(others) if others else None)


def check(sides: Sides, measure: Measure) -> None:
    """Prepare all objects once: one that has no distance is refused before any work."""
    for X, what in ((sides.ones, "A"), (sides.others, "B")):
        if X is not None:
            for rows in _pieces(slice(0, X.shape[0]), X):
                measure.prepare(_dense(X, rows), rows.start, what)


def check_symmetric(symmetric: str | None, others: Any) -> None:
    """Refuse a symmetric layout of the distances between two sets; SpecError."""
    if symmetric is not None and others is not None:
        raise SpecError(
            f"symmetric={symmetric!r} is for the distances of one set; leave it out, or B"
        )


def layout_of(sides: Sides, measure: Measure, symmetric: str | None) -> tiles.Symmetry:
    """How the matrix is stored, and whether only its upper tiles are computed.

    Raises
    ------
    SpecError
        ``symmetric`` is asked of two sets of rows.
    """
    check_symmetric(symmetric, sides.others)
    if sides.others is not None or not measure.is_symmetric:
        return "none"
    return "full" if symmetric == "full" else "upper"


def in_memory(sides: Sides, measure: Measure, layout: str, runner: Here, tile: int) -> np.ndarray:
    """All distances, (a, b) float64."""
    out = np.empty(sides.shape)

    def fill(block):
        rows, columns = tiles.span(sides.shape, tile, *block)
        sweep(sides, measure, rows, columns, out[rows], columns.start)
        if layout != "none" and rows != columns:
            mirror(out[rows, columns], out[columns, rows])
        return {}

    grid = [[block] for block in tiles.numbers(sides.shape, tile, layout)]
    for _ in runner.run(Pass("distances", fill, grid)):
        pass
    return out


def to_store(
    sides: Sides, measure: Measure, layout: tiles.Symmetry, path, runner: Here | Cluster, *,
    ids=None, tile: int = tiles.TILE,
) -> MatrixStore:  # fmt: skip
    """All distances, as float32 in a store; what a stopped run of the same work did is kept.

    Raises
    ------
    SpecError
        A callable that cannot be sent to the workers.
    """
    if isinstance(measure, Called) and isinstance(runner, Cluster):
        check_travels(measure, f"distance {measure.name}")
    with within_reach(sides, runner) as source:
        return write_matrix(
            path, sides.shape, functools.partial(_tile, source=source, measure=measure), runner,
            name="distances", fingerprint=digest_of(sides, measure.fingerprint),
            symmetric=layout, ids=ids, tile=tile,
        )  # fmt: skip


def _tile(rows: slice, columns: slice, *, source, measure: Measure) -> np.ndarray:
    """Task: compute one tile."""
    out = np.empty((rows.stop - rows.start, columns.stop - columns.start))
    sweep(source.open(), measure, rows, columns, out)
    with np.errstate(over="ignore"):  # becomes infinite, which the store refuses by its place
        return out.astype(np.float32)


def sweep(
    sides: Sides, measure: Measure, rows: slice, columns: slice, out: np.ndarray, left: int = 0
) -> None:
    """Write the distances of some rows with some columns to ``out[:, left:]``, float64."""
    is_own = sides.others is None and measure.is_symmetric and rows == columns
    for r in _pieces(rows, sides.ones):
        ones = measure.prepare(_dense(sides.ones, r), r.start, "A")
        band = out[r.start - rows.start : r.stop - rows.start]
        for c in _pieces(columns, sides.columns):
            at = left + c.start - columns.start
            if is_own and c.start < r.start:
                other = out[c.start - rows.start : c.stop - rows.start]
                begin = left + r.start - columns.start
                mirror(other[:, begin : begin + len(band)], band[:, at : at + len(other)])
                continue
            name = "A" if sides.others is None else "B"
            others = (
                ones
                if is_own and r == c
                else measure.prepare(_dense(sides.columns, c), c.start, name)
            )
            measure.sweep(ones, others, band, at)


def _dense(X, rows: slice) -> np.ndarray:
    return X[rows].toarray() if sparse.issparse(X) else X[rows]


def _pieces(rows: slice, X) -> list[slice]:
    """Cut rows so that each piece fits into `PIECE_BYTES` when it is dense."""
    step = max(1, PIECE_BYTES // (8 * X.shape[1]))
    return [slice(i, min(i + step, rows.stop)) for i in range(rows.start, rows.stop, step)]


def mirror(part: np.ndarray, out: np.ndarray) -> None:
    """Write the transpose of ``part`` (a, b) to ``out`` (b, a), square by square."""
    for i in range(0, part.shape[0], MIRROR):
        for j in range(0, part.shape[1], MIRROR):
            out[j : j + MIRROR, i : i + MIRROR] = part[i : i + MIRROR, j : j + MIRROR].T


def refuse_large(a: int, b: int) -> None:
    """Refuse a matrix in memory that takes more than half of it; SpecError."""
    needed, limit = 8 * a * b, memory_bytes() // 2
    if needed > limit:
        raise SpecError(
            f"all {a:,} x {b:,} distances take {needed / 2**30:,.2f} GiB, the limit is "
            f"{limit / 2**30:,.2f} (half the memory); give out=PATH to store them tile by tile"
        )


def tile_of(measure: Measure, *, is_stored: bool) -> int:
    """Rows of a tile unless given."""
    if isinstance(measure, Called):
        return CALLED_TILE
    return tiles.TILE if is_stored else HELD_TILE


class Cost(NamedTuple):
    """What a matrix takes to compute and store."""

    tasks: int
    n_tiles: int  # stored
    reads: int  # bytes of rows
    writes: int  # bytes, before compression
    memory: int  # bytes of one task, beside the rows


def cost(
    n: int, p: int, row_bytes: float, layout: str, tile: int, pair_bytes: int = PAIR_BYTES
) -> Cost:
    """Cost of the matrix of n rows of p features, each of so many bytes, with each other.

    A task holds a tile, with what it takes to check and compress it; the rows of both sides as
    float64, checked, and as they are compared; and a block of them turned.

    >>> cost(2_000, 16, 64, "upper", 1_000)
    Cost(tasks=3, n_tiles=3, reads=384000, writes=12000000, memory=57950208)
    """
    blocks = list(tiles.numbers((n, n), tile, layout))
    spans = [tiles.span((n, n), tile, *block) for block in blocks]
    sides = [(r.stop - r.start, c.stop - c.start) for r, c in spans]
    copies = [2 if layout == "full" and a != b else 1 for a, b in blocks]
    side = min(n, tile)
    piece = min(side, max(1, PIECE_BYTES // (8 * p)))
    return Cost(
        tasks=len(tile_blocks(blocks)),
        n_tiles=sum(copies),
        reads=round(sum(row_bytes * (a + b) for a, b in sides)),
        writes=sum(4 * k * a * b for (a, b), k in zip(sides, copies)),
        memory=WRITING + pair_bytes * side**2 + 8 * p * (6 * piece + SIDE),
    )
