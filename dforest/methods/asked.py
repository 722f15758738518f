"""Two sets of rows whose distances are asked: what a task holds, and the answers of one block.

A tree tells a pair's distance from the two rows' leaves alone. So rows are routed first, and tasks
hold leaves and tables: in this process, or as maps of a scratch folder.
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dforest.methods.model import Forest, from_arrays, to_arrays, under
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.tree.grids import number, write_grid
from dforest.tree.layout import n_leaves
from dforest.tree.leaves import paired
from dforest.tree.pairs import GROUP, STRIP, add_group, seats

ROWS = 1_024  # of a block: a leaf then has several of them, and its means are spread out once
PAIRS = 1 << 20  # of a block


class Speaker(NamedTuple):
    """A tree that knows some z."""

    number: int
    table: Any
    cell: np.ndarray  # (L,) int32: leaves of one cell answer alike


@dataclass(frozen=True)
class Asked:
    """A forest, and two sets of rows by their leaves, whose distances it shall tell."""

    forest: Forest
    ones: np.ndarray  # (a, T) int32
    others: np.ndarray | None = None  # (b, T) int32; None for the same rows again
    outside: np.ndarray | None = None  # (a, T) bool, only there: rows that are out of a tree's bag
    trees: str = "both"  # trees answer for which "both" rows of a pair are outside, or "either"

    @property
    def right(self) -> np.ndarray:
        """Leaves of the other side."""
        return self.ones if self.others is None else self.others

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of the two sides."""
        return len(self.ones), len(self.right)

    @property
    def is_kernel(self) -> bool:
        """Whether sums of z are divided by numbers of pairs, once over all trees."""
        return self.forest.recipe.weighting == "kernel"

    @property
    def either(self) -> bool:
        """Whether one row that is out of a tree's bag is enough for it to answer."""
        return self.trees == "either"

    @functools.cached_property
    def speakers(self) -> list[Speaker]:
        """The trees that know any z; the others abstain from every pair."""
        found = []
        for t, (tree, table) in enumerate(zip(self.forest.trees, self.forest.tables, strict=True)):
            table = _read_only(table)
            cell = getattr(table, "cell", _plain(np.arange(n_leaves(tree), dtype=np.int32)))
            leaf, mean = np.zeros(1, np.int64), np.zeros((1, 2), number(table))
            write_grid(table, leaf, leaf, mean, mean[:0])
            if not np.isnan(mean[0, 1]):  # a pair that is not known has its ancestors' mean
                found.append(Speaker(t, table, cell))
        return found

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts; of the forest all but the leaves of its own rows."""
        bare = dataclasses.replace(self.forest, leaves=self.forest.leaves[:0])
        arrays, facts = to_arrays(bare)
        arrays = {f"forest.{name}": array for name, array in arrays.items()}
        sides = {"ones": self.ones, "others": self.others, "outside": self.outside}
        arrays |= {name: array for name, array in sides.items() if array is not None}
        return arrays, {"forest": facts, "trees": self.trees}

    @classmethod
    def from_flat(cls, arrays, facts) -> "Asked":
        """Put together again."""
        forest = from_arrays(under("forest.", arrays), facts["forest"])
        sides = arrays["ones"], arrays.get("others"), arrays.get("outside")
        return cls(forest, *sides, facts["trees"])


def _plain(array: np.ndarray) -> np.ndarray:
    array = array.view(np.ndarray)
    array.flags.writeable = False
    return array


def _read_only(table):
    """The table as numba shall see it: arrays and mapped files share one compiled form."""
    return type(table)(*(_plain(x) if isinstance(x, np.ndarray) else x for x in table))


# Blocks ----------------------------------------------------------------------------------------


def cut(n: int, step: int) -> list[slice]:
    """Cut n rows into blocks of ``step``.

    >>> cut(5, 3)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    step = max(1, step)
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def row_blocks(n: int, runner: Here | Cluster) -> list[slice]:
    """Cut rows into blocks, as large as pays, but at least one for each thread."""
    return cut(n, min(ROWS, -(-n // max(1, runner.threads))))


def pair_blocks(shape, same: bool, runner: Here | Cluster) -> list[tuple[slice, slice]]:
    """Cut all pairs into blocks of rows and columns; of the same rows, each pair once."""
    if same:
        sides = cut(shape[0], min(ROWS, -(-shape[0] // max(1, 2 * runner.threads))))
        return [(rows, columns) for i, rows in enumerate(sides) for columns in sides[i:]]
    blocks = row_blocks(shape[0], runner)
    across = column_blocks(shape[1], max((block.stop - block.start for block in blocks), default=1))
    return [(rows, columns) for rows in blocks for columns in across]


def column_blocks(n: int, rows: int) -> list[slice]:
    """Cut n columns into blocks for so many rows: of few rows, the more columns."""
    return cut(n, PAIRS // max(1, rows))


def sorted_rows(leaves: np.ndarray) -> np.ndarray:
    """Order in which rows (n, T) that share leaves are near each other: blocks have fewer then."""
    return np.lexsort(leaves[:, 1::-1].T)


# Answers of a block ----------------------------------------------------------------------------


class Answer(NamedTuple):
    """Means over trees, and their spread where it was asked for."""

    mean: np.ndarray
    std: np.ndarray | None


def answer(asked: Asked, rows: slice, columns: slice, *, with_std=False) -> Answer:
    """Answer for some rows of one side with some of the other: (a, b) float64.

    NaN where no tree may answer, or knows any z.
    """
    sums = _sums(asked, rows, columns, _layers(asked, with_std))
    return _finish(sums, _count(asked, rows, columns), asked.is_kernel)


def answer_paired(asked: Asked, rows: slice) -> np.ndarray:
    """Answer for each of some rows with the one at its place on the other side: (a,) float64."""
    ones, others = (np.ascontiguousarray(side[rows].T) for side in (asked.ones, asked.right))
    sums = {name: np.zeros(ones.shape[1]) for name in _layers(asked, False)}
    for t, table, _ in asked.speakers:
        means, known = paired(table, ones[t], others[t])
        for name, total in sums.items():
            total += _layer(name, means, known)
    return _finish(sums, len(asked.speakers), asked.is_kernel).mean


def block_bytes(
    rows: int, columns: int, n_trees: int, n_leaves: int, *, n_layers: int = 1, either: bool = False
) -> int:
    """Bytes that `answer` takes at most for a block, its result included.

    ``n_layers`` is 1 for means, 2 with spreads; with kernel weighting 3, and 4 with spreads.
    Finishing holds two matrices more beside the sums.

    >>> block_bytes(1_024, 1_024, n_trees=100, n_leaves=300)
    34409888
    """
    ones, others = min(rows, n_leaves), 1 + min(columns, n_leaves)
    grids = 8 * GROUP * ones * others * n_layers + (32 * ones * others if n_layers > 1 else 0)
    room = 8 * GROUP * (1 + (1 + either) * ones) * STRIP
    places = 16 * (n_trees + GROUP) * (rows + columns) + 8 * n_trees * (ones + others)
    return 8 * rows * columns * (n_layers + 2) + grids + room + places


def _layers(asked: Asked, with_std: bool) -> list[str]:
    """Names of the sums over trees that an answer is made of."""
    own = ["mean", "apart", "known"] if asked.is_kernel else ["mean"]
    return [*own, "square"] if with_std else own


def _layer(name: str, means: np.ndarray, known: np.ndarray) -> np.ndarray:
    """What a tree adds to the sum of that name."""
    if name == "apart":
        return means * known
    return {"mean": means, "known": known}[name] if name != "square" else means**2


def _finish(sums: dict[str, np.ndarray], count, is_kernel: bool) -> Answer:
    """Means and spreads, in place of sums; with kernel weighting, sum of z over sum of pairs."""
    mean, spread = sums["mean"], None
    for name in {"mean", "square"} & set(sums):
        np.divide(sums[name], count, out=sums[name], where=count > 0)
        sums[name][np.equal(count, 0)] = np.nan
    if "square" in sums:
        spread = np.sqrt(np.maximum(sums["square"] - mean**2, 0.0))
    if is_kernel:  # a pair that no tree knows keeps the mean of what their ancestors said
        np.divide(sums["apart"], sums["known"], out=mean, where=sums["known"] > 0)
    return Answer(mean, spread)


def _count(asked: Asked, rows: slice, columns: slice):
    """How many trees answer for each pair: one number, or (a, b)."""
    n = len(asked.speakers)
    if asked.outside is None:
        return n
    who = [speaker.number for speaker in asked.speakers]
    ones, others = (asked.outside[side][:, who] for side in (rows, columns))
    if asked.either:
        return n - (~ones).astype(np.float32) @ (~others).T.astype(np.float32)
    return ones.astype(np.float32) @ others.T.astype(np.float32)  # whole numbers: exact


class _Side(NamedTuple):
    """Rows of one side of a block, for one tree."""

    leaf: np.ndarray  # different leaves
    place: np.ndarray  # of each row among them, from 1
    may: np.ndarray | None  # whether the tree may answer for the row, if that is asked


def _sums(asked: Asked, rows: slice, columns: slice, layers: list[str]) -> dict[str, np.ndarray]:
    """Sums over trees of what each layer's name says: (a, b) float64."""
    sides = list(zip(_sides(asked, asked.ones, rows), _sides(asked, asked.right, columns)))
    a, b = rows.stop - rows.start, columns.stop - columns.start
    sums = {name: np.zeros((a, b)) for name in layers}
    if not sides:
        return sums
    most = [max(len(pair[k].leaf) for pair in sides) for k in (0, 1)]
    kind = number(asked.forest.tables[0]) if layers == ["mean"] else np.dtype(np.float64)
    grids = np.zeros((len(layers), GROUP, most[0], 1 + most[1]), kind)
    room = np.empty((GROUP, 1 + most[0] * (1 + asked.either), STRIP), kind)
    for begin in range(0, len(sides), GROUP):
        group = sides[begin : begin + GROUP]
        for g, pair in enumerate(group):
            _fill(grids[:, g], asked.speakers[begin + g].table, *pair, layers)
        places = _places(group, a, b, asked.either)
        for grid, total in zip(grids, sums.values(), strict=True):
            add_group(grid, *places, room, total)
    return sums


def _sides(asked: Asked, leaves, rows: slice) -> list[_Side]:
    leaves, outside = np.ascontiguousarray(leaves[rows].T), asked.outside
    may = None if outside is None else np.ascontiguousarray(outside[rows].T)
    return [
        _Side(leaf, place, None if may is None else may[t])
        for t, _, cell in asked.speakers
        for leaf, place in [seats(leaves[t], cell)]
    ]


def _fill(grids, table, one: _Side, other: _Side, layers) -> None:
    """Write one tree's layers for the leaves that occur: grids (layers, rows, 1 + columns)."""
    if layers == ["mean"]:
        write_grid(table, one.leaf, other.leaf, grids[0], grids[0, :0])
        return
    shape = len(one.leaf), 1 + len(other.leaf)
    means, known = np.zeros((2, *shape), number(table))
    write_grid(table, one.leaf, other.leaf, means, known)
    means, known = means.astype(np.float64), known.astype(np.float64)
    for grid, name in zip(grids, layers, strict=True):
        grid[: shape[0], : shape[1]] = _layer(name, means, known)


def _places(group: list[tuple[_Side, _Side]], a: int, b: int, either: bool):
    """For `add_group`: how many leaves are asked whole and masked, places of rows and columns."""
    n_whole, n_masked = np.zeros((2, GROUP), np.int64)
    ones, (whole, masked) = np.zeros((GROUP, a), np.int32), np.zeros((2, GROUP, b), np.int32)
    for g, (one, other) in enumerate(group):
        n_leaves = len(one.leaf)
        ones[g], whole[g], masked[g] = one.place, other.place, other.place
        if one.may is None:
            n_whole[g] = n_leaves
            continue
        masked[g] *= other.may
        n_masked[g] = n_leaves
        if either:  # rows outside may be asked about every column, the rest about those outside
            n_whole[g] = n_leaves
            ones[g] += n_leaves * ~one.may
        else:
            ones[g] *= one.may
    return n_whole, n_masked, ones, whole, masked
