"""Similarity-and-metric forests (SMERF): grow trees, then tabulate their leaves.

Two passes over groups of trees. Growing draws each tree's rows and splits them by equation (1);
tabulating routes rows and sums distances between leaves, equation (2). Which rows vote, and on
which distances, is free: the same rows, those out of bag, or others altogether.
"""

import contextlib
import contextvars
import dataclasses
import functools
import pathlib
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dforest.errors import DataError, SpecError
from dforest.methods.material import (
    Held,
    Mapped,
    Material,
    dense_blocks,
    digest_of,
    within_reach,
)
from dforest.methods.model import (
    Forest,
    Recipe,
    draw_bag,
    draw_pool,
    joined_tables,
    parted_tables,
)
from dforest.methods.notions import NOTIONS, Given, Voters
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.passes import Part, Pass
from dforest.seeds import stream
from dforest.store.receipts import Receipts
from dforest.tree.binning import make_table
from dforest.tree.grow import Limits, grow
from dforest.tree.layout import Tree, best_first, joined, parted, pruned
from dforest.tree.route import route

BLOCK_ROWS = 16_384  # rows of a subtree whose codes stay in a core's own cache
GROUPS = 32  # tasks of a pass over trees; fixed, so that receipts fit any cluster

_keep: contextvars.ContextVar[Receipts | None] = contextvars.ContextVar("keep", default=None)
_rooms = threading.local()  # a thread's room to copy distances to: fresh memory is slow memory


@contextlib.contextmanager
def keeping(receipts: Receipts) -> Iterator[None]:
    """Keep finished groups of trees under these receipts; a killed fit then takes up from them."""
    token = _keep.set(receipts)
    try:
        yield
    finally:
        _keep.reset(token)


class TableOptions(NamedTuple):
    """What leaf tables are asked to be."""

    self_pairs: bool
    max_cells: int  # cells a dense table may have


def fit(recipe: Recipe, X, given: Given, runner: Here | Cluster, old=None) -> Forest:
    """Grow and tabulate a forest.

    Parameters
    ----------
    X : (n, p) ndarray or CSR
    given : Given
        Checked distances between the n rows.
    old : Forest, optional
        A forest of the same recipe with fewer trees, whose trees are kept.
    """
    n = X.shape[0]
    drawn_from, within = X, given
    if recipe.pool_size is not None:
        pool = draw_pool(recipe, n)
        drawn_from, within = X[pool], NOTIONS[given.notion].take(given, pool)
    begun = len(old.trees) if old else 0
    trees = list(old.trees) if old else []
    if begun < recipe.n_estimators:
        table = make_table(
            drawn_from,
            max_bins=recipe.max_bins,
            row_major=drawn_from.shape[0] > BLOCK_ROWS,
            keep_values=recipe.projections == "sparse",
        )
        material = Material(drawn_from, within, table)
        groups = _groups(begun, recipe.n_estimators)
        step = functools.partial(_grow_group, recipe=recipe)
        for part in _over_trees("grow-trees", step, groups, material, runner):
            trees += parted(part)
    nothing = np.empty(0, np.int64), np.empty((n, 0), np.int32)
    forest = Forest(recipe, n, X.shape[1], trees, [], given.notion, *nothing)
    return tabulate(forest, X, given, recipe.leaf_rows, runner)


def tabulate(forest: Forest, X, given: Given, leaf_rows: str, runner, *, again=False) -> Forest:
    """The same trees with new leaf tables, from the rows of ``X`` and their distances.

    ``leaf_rows`` other than "all" means the rows that the forest was fitted on. ``again`` says that
    the rows may be others: the forest then keeps the leaves of those it was fitted on.
    """
    n, recipe = X.shape[0], forest.recipe
    if leaf_rows != "all" and n != forest.n_rows:
        raise DataError(
            f'leaf_rows="{leaf_rows}" needs the {forest.n_rows} rows of the fit, got {n} rows; '
            'use leaf_rows="all" for other rows'
        )
    votes = functools.partial(
        _tabulate_group, recipe=recipe, n_fit=forest.n_rows, leaf_rows=leaf_rows
    )
    material = Material(X, given, trees=forest.trees)
    groups = _groups(0, len(forest.trees))
    name = "refit-leaves" if again else "tabulate-leaves"
    tables, leaves, fallbacks = [], [], []
    for group, part in zip(groups, _over_trees(name, votes, groups, material, runner), strict=True):
        leaves.append(part.pop("leaves"))
        fallbacks.append(part.pop("fallbacks"))
        tables += parted_tables(part, [forest.trees[t] for t in group])
    changed: dict[str, Any] = {"tables": tables, "fallbacks": np.concatenate(fallbacks)}
    changed |= {"table_notion": given.notion}
    if not again:
        changed["leaves"] = np.concatenate(leaves, axis=1)
    return dataclasses.replace(forest, **changed)


def _groups(begin: int, end: int) -> list[range]:
    size = max(1, -(-(end - begin) // GROUPS))
    return [range(t, min(t + size, end)) for t in range(begin, end, size)]


def _over_trees(name, step, groups, material: Material, runner) -> Iterator[Part]:
    """Run a step over groups of trees, on what the runner can reach, keeping receipts if asked."""
    keep = _keep.get()
    if keep is not None:  # fits under one folder, as of a cross-validation, each keep their own
        work = digest_of(material, name, groups, step.keywords)
        keep = Receipts(pathlib.Path(keep.folder) / work[:16], f"{keep.fingerprint} {work}")
    with within_reach(material, runner) as source:
        job = Pass(name, functools.partial(step, source=source), [[g] for g in groups], keep=keep)
        yield from runner.run(job)


# Growing ---------------------------------------------------------------------------------------


def _grow_group(group: range, *, source: Held | Mapped, recipe: Recipe) -> Part:
    """Task: grow some trees."""
    material = source.open()
    return joined([grow_tree(material, recipe, t) for t in group])


def grow_tree(material: Material, recipe: Recipe, number: int) -> Tree:
    """Grow tree ``number`` from its own streams."""
    n, given = material.X.shape[0], material.given
    rows, weights = draw_bag(recipe, n, number)
    limits = _limits(recipe, given.notion, weights.sum())
    room = _room(min(len(rows), limits.block_rows)) if given.notion == "precomputed" else None
    key = int(stream(recipe.seed, "tree", number, "nodes").integers(2**63))
    criterion = NOTIONS[given.notion].criterion(given, room)
    assert material.table is not None
    tree = grow(material.table, criterion, rows, weights, key, limits)
    if recipe.max_leaf_nodes is None:
        return tree
    return pruned(tree, best_first(tree, recipe.max_leaf_nodes))


def _limits(recipe: Recipe, notion: str, n_drawn: float) -> Limits:
    is_matrix = notion == "precomputed"  # only there does a search cost more than linear time
    cap = recipe.max_split_rows if is_matrix else None
    block = (cap or np.iinfo(np.int64).max) if is_matrix else BLOCK_ROWS
    return Limits(
        float(recipe.min_samples_leaf),
        float(recipe.min_samples_split),
        np.iinfo(np.int64).max if recipe.max_depth is None else recipe.max_depth,
        recipe.min_impurity_decrease * n_drawn,
        recipe.max_features,
        cap or 0,
        int(block),
        recipe.projections == "sparse",
    )


def _room(side: int) -> np.ndarray:
    """Give the thread its (side, side) float32 room, made anew only when it must be larger."""
    if getattr(_rooms, "flat", np.empty(0)).size < side * side:
        _rooms.flat = np.empty(side * side, np.float32)
    return _rooms.flat[: side * side].reshape(side, side)


# Tabulating ------------------------------------------------------------------------------------


def _tabulate_group(
    group: range, *, source: Held | Mapped, recipe: Recipe, n_fit: int, leaf_rows: str
) -> Part:
    """Task: route all rows through some trees, and tabulate those that vote."""
    material = source.open()
    trees = [material.trees[t] for t in group]
    leaves, pool = route_all(trees, material.X), draw_pool(recipe, n_fit)
    tables, fallbacks = [], []
    for number, tree, leaf in zip(group, trees, leaves.T, strict=True):
        rows, weights = voters(recipe, number, pool, len(leaf), leaf_rows)
        options = TableOptions(
            recipe.self_pairs, max_cells(recipe.table_budget, recipe.n_estimators)
        )
        given = material.given
        table, n_filled = NOTIONS[given.notion].table(
            given, tree, Voters(rows, leaf[rows], weights), options
        )
        tables.append(table)
        fallbacks.append(n_filled)
    return joined_tables(tables) | {"leaves": leaves, "fallbacks": np.array(fallbacks)}


def max_cells(table_budget: int, n_estimators: int) -> int:
    """Cells that a dense table may have, so that all tables stay within the budget.

    A table of C cells takes 8 bytes for each of C (C + 1) / 2 pairs: a mean, and its pairs.
    """
    return max(1, int((np.sqrt(1.0 + table_budget / n_estimators) - 1.0) / 2.0))


class MatrixCost(NamedTuple):
    """Bytes that trees on an (n, n) matrix take."""

    memory: int  # of a task: the matrix, room to copy a block of it to, the sums of one table
    model: int  # of all tables


def matrix_cost(n: int, min_leaf: int, max_split_rows, table_budget, n_estimators) -> MatrixCost:
    """What growing on n rows of a matrix and tabulating them takes, at most.

    >>> matrix_cost(1_000, 5, None, 1 << 30, 100)
    MatrixCost(memory=8480000, model=16000000)
    """
    block = min(n, max_split_rows or n)
    cells = min(max(1, n // min_leaf), max_cells(table_budget, n_estimators))
    return MatrixCost(4 * n**2 + 4 * block**2 + 12 * cells**2, 4 * cells**2 * n_estimators)


def voters(recipe: Recipe, tree: int, pool: np.ndarray, n: int, leaf_rows: str):
    """Rows that a tree tabulates, and how often each counts."""
    if leaf_rows == "all":
        return np.arange(n), np.ones(n)
    places, weights = draw_bag(recipe, len(pool), tree)
    rows = pool[places]
    if leaf_rows == "in_bag":
        return rows, weights
    rows = np.setdiff1d(np.arange(n), rows)
    if not len(rows):
        raise SpecError(
            f'leaf_rows="out_of_bag": tree {tree} drew all {n} rows; draw fewer with max_samples'
        )
    return rows, np.ones(len(rows))


def route_all(trees: list[Tree], X) -> np.ndarray:
    """Leaf of each row in each tree: (n, T) int32."""
    leaves = np.empty((X.shape[0], len(trees)), np.int32)
    for rows, block in dense_blocks(X):
        for t, tree in enumerate(trees):
            leaves[rows, t] = route(tree, block)
    return leaves
