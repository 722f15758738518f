"""What a fit takes, before it is begun: rows of the pool, bytes, tasks.

Estimates are upper bounds: of leaves, and so of tables and of the sums that they are made from.
"""

from typing import NamedTuple

import numpy as np

from dforest.methods.forest import GROUPS, groups_of, max_cells
from dforest.methods.tiles import tile_blocks
from dforest.run.memory import Room
from dforest.store.matrix import MatrixStore
from dforest.store.tiles import numbers
from dforest.tree import leaves

BANDS = 6  # blocks across a matrix, at least, where it has as many tiles: work for several workers
MOST_TREES = 16  # of a group: each tile is then read for so many; more would save little
COPIES = 9  # of a group's sums on one worker: 1 + log2(PARTS) that wait, one made, two that travel
LOOKING = 32  # trees that are compared to tell how far the pool decides, at most
PARTS = 32  # tasks of a sweep over a matrix, about, whatever the cluster


class MatrixCost(NamedTuple):
    """Bytes that trees on an (n, n) matrix take."""

    shared: int  # the matrix, which all tasks of a process map or hold
    task: int  # of a task: room to copy a block of it to, sums and tables of a group of trees
    model: int  # of all tables

    def of(self, tasks: int) -> int:
        """Bytes of a process with so many tasks at once."""
        return self.shared + tasks * self.task


def matrix_cost(n: int, min_leaf: int, max_split_rows, table_budget, n_estimators) -> MatrixCost:
    """What growing on n rows of a matrix and tabulating them takes, at most.

    >>> matrix_cost(1_000, 5, None, 1 << 30, 100)
    MatrixCost(shared=4000000, task=6400000, model=16000000)
    """
    block, group = min(n, max_split_rows or n), -(-n_estimators // GROUPS)
    cells = most_cells(n, min_leaf, table_budget, n_estimators)
    sums = 28 * cells**2  # square with what is known beside it, then as triangles
    task = 4 * block**2 + sums + 8 * group * cells**2
    return MatrixCost(4 * n**2, task, 4 * cells**2 * n_estimators)


def most_cells(n: int, min_leaf: int, table_budget: int, n_estimators: int) -> int:
    """Most cells of the table of a tree that drew n rows."""
    return min(max(1, n // min_leaf), max_cells(table_budget, n_estimators))


def largest_pool(
    n: int, room: Room, min_leaf: int, max_split_rows, table_budget, n_estimators
) -> int:
    """Most rows, up to n, on whose distances trees can grow within a process's memory."""
    costs = min_leaf, max_split_rows, table_budget, n_estimators
    low, high = 1, n
    while low < high:
        middle = (low + high + 1) // 2
        if matrix_cost(middle, *costs).of(room.tasks) <= room.total:
            low = middle
        else:
            high = middle - 1
    return low


def fits(n_rows: int, room: Room) -> bool:
    """Whether a matrix can be read whole into this process, with room for as much again."""
    return 8 * n_rows**2 <= room.total


# Summing a stored matrix -------------------------------------------------------------------------


def block_side(n_rows: int, tile: int) -> int:
    """Rows of the blocks in which a stored matrix is summed: some tiles."""
    most = max(1, leaves.SIDE // tile)
    return tile * int(np.clip(-(-n_rows // tile) // BANDS, 1, most))


def block_memory(side: int, tile: int, symmetric: str = "upper") -> int:
    """Bytes that a task holds beside sums: a block, and a tile as it is read and decoded.

    A tile of a store that need not be symmetric is compared with its mirror image, in float64.
    """
    return 4 * side**2 + (36 if symmetric == "none" else 12) * tile**2


def sum_bytes(n_cells: int, has_unknown: bool) -> int:
    """Bytes of one tree's sums."""
    return 8 * n_cells**2 * (2 if has_unknown else 1)


def groups_within(n_cells: np.ndarray, has_unknown: bool, budget: int) -> list[range]:
    """Trees in groups, in order, whose sums fit ``COPIES`` times into ``budget`` bytes."""
    groups, begin, held = [], 0, 0
    for t, side in enumerate(n_cells.tolist()):
        own = COPIES * sum_bytes(side, has_unknown)
        if t > begin and (held + own > budget or t - begin == MOST_TREES):
            groups.append(range(begin, t))
            begin, held = t, 0
        held += own
    return [*groups, range(begin, len(n_cells))]


def n_parts(n_rows: int, side: int, n_groups: int) -> int:
    """Tasks of each group of trees."""
    n_blocks = -(-n_rows // side)
    return min(-(-PARTS // n_groups), n_blocks * (n_blocks + 1) // 2)


# A whole fit -------------------------------------------------------------------------------------


class StoredCost(NamedTuple):
    """What a fit on a stored matrix takes that is not read whole."""

    pool: int  # rows
    tasks: int
    passes: int  # times that the matrix is read
    scratch: int  # bytes written for the time of the fit
    memory: int  # bytes of a task, with its share of what tasks share
    model: int  # bytes of the tables


def stored_cost(store: MatrixStore, forest, pool: int, room: Room) -> StoredCost:
    """Tasks, bytes and memory of a fit, by the parameters of a `DistanceForest` or a recipe."""
    n, n_trees = store.n_rows, forest.n_estimators
    costs = forest.min_samples_leaf, forest.max_split_rows, forest.table_budget
    own, n_groups = matrix_cost(pool, *costs, n_trees), len(groups_of(0, n_trees))
    looking = 0 if pool == n else 3 * len(groups_of(0, min(n_trees, LOOKING)))
    tasks = len(tile_blocks(list(numbers(store.shape, store.tile, "upper"))))
    tasks += 2 * n_groups + looking
    growing = -(-own.of(room.tasks) // room.tasks)
    found = StoredCost(pool, tasks, 1, 8 * pool**2, growing, own.model)
    if forest.leaf_rows == "in_bag" or pool == n:
        return found
    side = block_side(n, store.tile)
    cells = np.full(n_trees, most_cells(pool, costs[0], costs[2], n_trees))
    votes = 16 * n * n_trees // room.tasks  # of all rows in all trees, and the leaves they reach
    block = block_memory(side, store.tile, store.symmetric)
    groups = groups_within(cells, store.has_unknown, room.per_task - block)
    sums = COPIES * sum_bytes(int(cells[0]), store.has_unknown) * max(map(len, groups))
    return found._replace(
        tasks=tasks + n_groups + len(groups) * n_parts(n, side, len(groups)),
        passes=1 + len(groups),
        memory=max(growing, block + sums + votes),
    )
