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

from dforest.errors import SpecError
from dforest.methods.material import (
    Flat,
    Held,
    Mapped,
    Material,
    digest_of,
    route_all,
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
from dforest.run.passes import Part, Pass
from dforest.seeds import stream
from dforest.store.receipts import Receipts
from dforest.tree.grow import Limits, grow
from dforest.tree.layout import Tree, best_first, joined, parted, pruned
from dforest.tree.leaves import vote_table

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


def grow_forest(
    recipe: Recipe, material: Material, begun: int, runner, *, name="grow-trees"
) -> list[Tree]:
    """Grow the trees of a recipe from number ``begun`` on; the recipe's pool is of the material."""
    trees: list[Tree] = []
    step = functools.partial(_grow_group, recipe=recipe)
    groups = groups_of(begun, recipe.n_estimators)
    for part in over_trees(name, step, groups, material, runner):
        trees += parted(part)
    return trees


def tabulate(
    forest: Forest, X, given: Given, leaf_rows: str, runner, *, name="tabulate-leaves", pool=None
) -> Forest:
    """The same trees with new leaf tables, from the rows of ``X`` and their distances.

    Parameters
    ----------
    leaf_rows : {"in_bag", "out_of_bag", "all"}
        Other than "all" means the rows that the forest was fitted on.
    pool : (k,) int64, optional
        Rows that ``given`` is about, ascending; None for all.
    """
    step = functools.partial(
        _tabulate_group,
        recipe=forest.recipe,
        n_fit=forest.n_rows,
        leaf_rows=leaf_rows,
        is_pooled=pool is not None,
    )
    material = Material(X, given, trees=forest.trees)
    groups = groups_of(0, len(forest.trees))
    tables, leaves, fallbacks = [], [], []
    for group, part in zip(groups, over_trees(name, step, groups, material, runner), strict=True):
        leaves.append(part.pop("leaves"))
        fallbacks.append(part.pop("fallbacks"))
        tables += parted_tables(part, [forest.trees[t] for t in group])
    return with_tables(
        forest, tables, np.concatenate(fallbacks), np.concatenate(leaves, axis=1), given.notion
    )


def with_tables(forest: Forest, tables, fallbacks, leaves, notion: str) -> Forest:
    """Replace the tables; a forest without leaves of its own rows takes ``leaves`` as theirs."""
    changed: dict[str, Any] = {
        "tables": tables,
        "fallbacks": fallbacks,
        "table_notion": notion,
    }
    if not len(forest.leaves):
        changed["leaves"] = leaves
    return dataclasses.replace(forest, **changed)


def groups_of(begin: int, end: int) -> list[range]:
    """Numbers of the trees of each task, from ``begin`` up to ``end``."""
    size = max(1, -(-(end - begin) // GROUPS))
    return [range(t, min(t + size, end)) for t in range(begin, end, size)]


def over_trees(name, step, groups, material: Material, runner) -> Iterator[Part]:
    """Run a step over groups of trees, on what the runner can reach, keeping receipts if asked."""
    keep = kept(material, name, groups, step.keywords)
    with within_reach(material, runner) as source:
        job = Pass(name, functools.partial(step, source=source), [[g] for g in groups], keep=keep)
        yield from runner.run(job)


def kept(thing: Flat, *said) -> Receipts | None:
    """Where a pass on a thing keeps its parts: a folder of its own, if receipts were asked for."""
    keep = _keep.get()
    if keep is None:
        return None
    work = digest_of(thing, *said)  # fits under one folder, as of a cross-validation, differ in it
    return Receipts(pathlib.Path(keep.folder) / work[:16], f"{keep.fingerprint} {work}")


# Growing ---------------------------------------------------------------------------------------


def _grow_group(group: range, *, source: Held | Mapped, recipe: Recipe) -> Part:
    """Task: grow some trees."""
    material = source.open()
    return joined([grow_tree(material, recipe, t) for t in group])


def grow_tree(material: Material, recipe: Recipe, number: int) -> Tree:
    """Grow tree ``number`` from its own streams."""
    given, pool = material.given, draw_pool(recipe, material.X.shape[0])
    places, weights = draw_bag(recipe, len(pool), number)
    rows = pool[places]
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
    group: range,
    *,
    source: Held | Mapped,
    recipe: Recipe,
    n_fit: int,
    leaf_rows: str,
    is_pooled: bool,
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
        given, own = material.given, np.searchsorted(pool, rows) if is_pooled else rows
        table, n_filled = NOTIONS[given.notion].table(
            given, tree, Voters(own, leaf[rows], weights), options
        )
        if recipe.tables == "votes":
            table = vote_table(table)
            n_filled = int(np.count_nonzero(table.weight == 0.0))
        tables.append(table)
        fallbacks.append(n_filled)
    return joined_tables(tables) | {"leaves": leaves, "fallbacks": np.array(fallbacks)}


def max_cells(table_budget: int, n_estimators: int) -> int:
    """Cells that a dense table may have, so that all tables stay within the budget.

    A table of C cells takes 8 bytes for each of C (C + 1) / 2 pairs: a mean, and its pairs.
    """
    return max(1, int((np.sqrt(1.0 + table_budget / n_estimators) - 1.0) / 2.0))


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
