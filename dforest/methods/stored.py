"""Distances in a matrix store: the pool of them, and their sums, tile by tile.

The matrix is never held. One pass over its tiles copies the distances within the pool to a scratch
file, which trees are grown from; another adds up all distances between the leaves of grown trees.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dforest.arrays.distances import TOLERANCE
from dforest.errors import DataError, StoreError
from dforest.methods.costs import block_side, n_parts
from dforest.methods.material import Held, Mapped, scratch_folder, within_reach
from dforest.methods.notions import Given, Voters
from dforest.methods.tiles import tile_blocks
from dforest.run.client import check_visible
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.passes import Keep, Part, Pass
from dforest.store import schema
from dforest.store.matrix import MatrixStore
from dforest.store.scratch import Scratch, write_part
from dforest.store.tiles import asymmetric, numbers, worst_asymmetry
from dforest.tree import leaves


def stored_given(store: MatrixStore, rows: np.ndarray) -> Given:
    """The distances between some rows of a store, in their order; nothing is read."""
    facts = {
        "n_rows": len(rows),
        "largest": store.largest,
        "has_unknown": store.has_unknown,
        "store": str(store.path),
        "generation": store.generation,
        "content": schema.fingerprint(store.path),
    }
    return Given("precomputed", {"rows": np.asarray(rows, np.int64)}, facts)


def store_of(given: Given) -> MatrixStore:
    """Open the store that holds them, once a process."""
    return _store(*(given.facts[key] for key in ("store", "generation", "content")))


@functools.lru_cache(maxsize=1)
def _store(path: str, generation: str, content: str) -> MatrixStore:
    store = MatrixStore(path, generation)
    if schema.fingerprint(path) != content and schema.read_pointer(path)["current"] == generation:
        raise StoreError(f"{path} was written again since the work began; begin again")
    return store


def read_upper(store: MatrixStore, a: int, b: int) -> np.ndarray:
    """Read tile (a, b), a <= b; of a store that need not be symmetric, compare it with (b, a)."""
    tile = store.read_tile(a, b)
    if store.symmetric == "none":
        mirrored = tile.T if a == b else store.read_tile(b, a).T
        worst, i, j = worst_asymmetry(tile, mirrored)
        if worst > TOLERANCE * store.largest:
            rows, columns = store.span(a, b)
            i, j, one, other = rows.start + i, columns.start + j, tile[i, j], mirrored[i, j]
            raise asymmetric(i, j, one, other)
        if a == b:  # equal but for rounding: the upper half speaks, as it does in other tiles
            tile = np.triu(tile) + np.triu(tile, 1).T
    return tile


# The pool --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draw:
    """Rows of a stored matrix whose distances are wanted, ascending in the store."""

    given: Given
    rows: np.ndarray  # (k,) int64 rows of the store

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        return {"rows": self.rows}, self.given.facts

    @classmethod
    def from_flat(cls, arrays, facts) -> "Draw":
        """Put together again."""
        return cls(Given("precomputed", {}, facts), arrays["rows"])


@contextlib.contextmanager
def pooled(given: Given, pool: np.ndarray, runner: Here | Cluster) -> Iterator[Given]:
    """Distances within the pool (k,) int64 of rows of ``given``, as a mapped scratch file.

    It lasts as long as the context, and lies where every worker of the runner sees it.
    """
    rows = given.arrays["rows"][pool]
    order = np.argsort(rows)
    k, draw = len(rows), Draw(given, rows[order])
    with scratch_folder(runner) as folder:
        with Scratch.create(folder / "pool", {"z": ((k, k), np.float32)}) as draft:
            z: Any = draft["z"]  # a map of a file, as k > 0
            _extract(draw, str(z.filename), runner)
        z = Scratch.open(folder / "pool")["z"]
        if (np.diff(order) < 0).any():  # the store has the rows in another order
            place = np.argsort(order)
            with Scratch.create(folder / "ordered", {"z": ((k, k), np.float32)}) as maps:
                for i in range(k):
                    maps["z"][i] = z[place[i]][place]
            z = Scratch.open(folder / "ordered")["z"]
        if np.isnan(z[0, 0]) and all(np.isnan(row).all() for row in z):
            raise DataError(
                f"{given.facts['store']}: none of the distances between the {k} rows that trees "
                "may draw is known; give more known distances, or a larger pool_size"
            )
        facts = {key: given.facts[key] for key in ("largest", "has_unknown")}
        yield Given("precomputed", {"z": z}, facts | {"n_rows": k})


def _seen_store(given: Given, runner: Here | Cluster) -> MatrixStore:
    """Open the store, once it is known that every worker sees it."""
    if isinstance(runner, Cluster):
        check_visible(runner.client, given.facts["store"])
    return store_of(given)


def _extract(draw: Draw, file: str, runner: Here | Cluster) -> None:
    store = _seen_store(draw.given, runner)
    tiles = list(numbers(store.shape, store.tile, "upper"))
    size = functools.partial(_tile_bytes, tile=store.tile)
    with within_reach(draw, runner) as source:
        step = functools.partial(_extract_tiles, source=source, file=file)
        job = Pass("pool", step, [[block] for block in tile_blocks(tiles)], bytes_of=size)
        for _ in runner.run(job):
            pass


def _tile_bytes(block, tile: int) -> int:
    return 4 * tile**2 * len(block)


def _extract_tiles(block, *, source: Held[Draw] | Mapped[Draw], file: str) -> Part:
    """Task: copy what some tiles hold of the pool, and its mirror image, to the scratch file."""
    draw = source.open()
    store = store_of(draw.given)
    for a, b in block:
        sides = [_within(draw.rows, side) for side in store.span(a, b)]
        (one, rows), (other, columns) = sides
        if len(rows) and len(columns):
            part = np.ascontiguousarray(read_upper(store, a, b)[np.ix_(rows, columns)])
            write_part(file, (one, other), part)
            if a != b:
                write_part(file, (other, one), np.ascontiguousarray(part.T))
    return {"n_tiles": np.array([len(block)])}


def _within(rows: np.ndarray, side: slice) -> tuple[int, np.ndarray]:
    """Place of the first of the ascending ``rows`` in a span, and all of those within it."""
    begin, end = np.searchsorted(rows, (side.start, side.stop))
    return int(begin), rows[begin:end] - side.start


# Sums over all tiles ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Sweep:
    """What tasks need to sum a stored matrix over the cells of some trees."""

    given: Given
    side: int  # rows of a block
    self_pairs: bool
    n_cells: np.ndarray  # (T,) int64
    scale: np.ndarray  # (T,) float64, see `leaves.matrix_scale`
    votes: leaves.Votes  # of all trees, one after the other; begin (T, blocks + 1)

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        arrays = {"n_cells": self.n_cells, "scale": self.scale, **self.votes._asdict()}
        return arrays, {"given": self.given.facts, "side": self.side, "selves": self.self_pairs}

    @classmethod
    def from_flat(cls, arrays, facts) -> "Sweep":
        """Put together again."""
        votes = leaves.Votes(*(arrays[name] for name in leaves.Votes._fields))
        given = Given("precomputed", {}, facts["given"])
        own = arrays["n_cells"], arrays["scale"]
        return cls(given, facts["side"], facts["selves"], *own, votes)

    def votes_of(self, tree: int) -> leaves.Votes:
        """Votes of one tree; ``begin`` counts from the first of all trees."""
        return self.votes._replace(begin=self.votes.begin[tree])

    def no_sums(self, trees: Sequence[int]) -> tuple[Part, list[leaves.SquareSums]]:
        """Flat sums of some trees, all zero, and the view of each tree's."""
        has_unknown = self.given.facts["has_unknown"]
        sides = self.n_cells[list(trees)]
        ends = np.append(0, np.cumsum(sides**2))
        part = {"total": np.zeros(ends[-1], np.int64)}
        part["known"] = np.zeros(ends[-1] if has_unknown else 0, np.int64)
        return part, self.views(part, trees)

    def views(self, part: Part, trees: Sequence[int]) -> list[leaves.SquareSums]:
        """Sums of each tree, as views of a flat part."""
        found, begin = [], 0
        for side in self.n_cells[list(trees)].tolist():
            own = slice(begin, begin + side**2)
            known = part["known"][own]
            known = known.reshape(side, side) if len(known) else known.reshape(0, 0)
            found.append(leaves.SquareSums(part["total"][own].reshape(side, side), known))
            begin = own.stop
        return found


def sweep_of(
    given: Given, voters: Sequence[Voters], cells: Sequence[np.ndarray], self_pairs: bool
) -> Sweep:
    """Sort the votes of trees: ``cells`` is the cell of each leaf, for each tree."""
    store, largest = store_of(given), given.facts["largest"]
    side = block_side(store.n_rows, store.tile)
    found = [
        leaves.votes_of(
            given.arrays["rows"][vote.rows], cell[vote.leaf], vote.weights, store.n_rows, side
        )
        for vote, cell in zip(voters, cells, strict=True)
    ]
    before = np.cumsum([0, *(len(votes.place) for votes in found)])
    begin = np.stack([votes.begin + start for votes, start in zip(found, before)])
    place, cell, weight = (np.concatenate([votes[k] for votes in found]) for k in range(3))
    scale = [leaves.matrix_scale(largest, vote.weights.sum()) for vote in voters]
    n_cells = np.array([int(cell[-1]) + 1 for cell in cells])
    return Sweep(
        given, side, self_pairs, n_cells, np.array(scale), leaves.Votes(place, cell, weight, begin)
    )


def sum_tiles(
    sweep: Sweep, groups: Sequence[range], runner: Here | Cluster, name: str, keep: Keep | None
) -> Iterator[list[leaves.MatrixSums]]:
    """Sum the matrix over the cells of each group of trees in turn; yields one list a group."""
    n = _seen_store(sweep.given, runner).n_rows
    blocks = list(leaves.blocks_of(n, sweep.side))
    shares = np.array_split(np.array(blocks), n_parts(n, sweep.side, len(groups)))
    grid = [[(trees, tuple(map(tuple, share.tolist()))) for share in shares] for trees in groups]
    with within_reach(sweep, runner) as source:
        step = functools.partial(_sum_blocks, source=source)
        size = functools.partial(_block_bytes, n=n, side=sweep.side)
        job = Pass(name, step, grid, _add, keep, size)
        for trees, part in zip(groups, runner.run(job), strict=True):
            yield [
                leaves.all_pairs(sums, _own(sweep.votes_of(t)), sweep.self_pairs)
                for t, sums in zip(trees, sweep.views(part, trees), strict=True)
            ]


def _own(votes: leaves.Votes) -> leaves.Votes:
    """Votes of one tree without those of the others."""
    own = slice(votes.begin[0], votes.begin[-1])
    begin = votes.begin - votes.begin[0]
    return leaves.Votes(votes.place[own], votes.cell[own], votes.weight[own], begin)


def _sum_blocks(block, *, source: Held[Sweep] | Mapped[Sweep]) -> Part:
    """Task: add some blocks of the matrix to the sums of some trees."""
    (trees, places), sweep = block, source.open()
    part, sums = sweep.no_sums(trees)
    room = np.empty(sweep.side**2, np.float32)  # once: fresh memory is slow memory
    for a, b in places:
        z = read_square(store_of(sweep.given), sweep.side, a, b, room)
        for t, own in zip(trees, sums, strict=True):
            votes = sweep.votes_of(t)
            ones = votes.of(a)
            others = ones if a == b else votes.of(b)
            scale = sweep.scale[t]
            leaves.add_block(z, (0, 0), z.shape[1], ones, others, scale, sweep.self_pairs, own)
    return part


def _add(left: Part, right: Part) -> Part:
    return {name: left[name] + right[name] for name in left}


def _block_bytes(block, n: int, side: int) -> int:
    return sum(
        4 * (min(n, (a + 1) * side) - a * side) * (min(n, (b + 1) * side) - b * side)
        for a, b in block[1]
    )


def read_square(store: MatrixStore, side: int, a: int, b: int, room: np.ndarray) -> np.ndarray:
    """Read block (a, b), a <= b, of ``side`` rows, a multiple of the store's tile, into a room."""
    n, per, tile = store.n_rows, side // store.tile, store.tile
    shape = [min(n, (k + 1) * side) - k * side for k in (a, b)]
    out = room[: shape[0] * shape[1]].reshape(shape)
    last = -(-n // tile)
    for i in range(a * per, min((a + 1) * per, last)):
        for j in range(max(i, b * per), min((b + 1) * per, last)):
            part = read_upper(store, i, j)
            top, left = i * tile - a * side, j * tile - b * side
            out[top : top + part.shape[0], left : left + part.shape[1]] = part
            if a == b and i != j:
                out[left : left + part.shape[1], top : top + part.shape[0]] = part.T
    return out
