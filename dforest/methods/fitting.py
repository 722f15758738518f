"""Fit a forest: draw the pool, grow trees on it, tabulate their leaves, and look at the pool.

Where the distances lie in a store that does not fit, trees see those of the pool only, and leaf
tables of other rows are made by streaming. When all fits, the pool is everything, and this is the
paper's algorithm.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

from dforest.errors import DataError, SpecError
from dforest.methods.answers import pairwise
from dforest.methods.asked import Asked
from dforest.methods.costs import (
    COPIES,
    LOOKING,
    block_memory,
    groups_within,
    stored_cost,
    sum_bytes,
)
from dforest.methods.forest import (
    BLOCK_ROWS,
    groups_of,
    grow_forest,
    kept,
    max_cells,
    over_trees,
    tabulate,
    voters,
    with_tables,
)
from dforest.methods.material import Held, Mapped, Material, route_all
from dforest.methods.model import Forest, Recipe, draw_pool
from dforest.methods.notions import NOTIONS, Given, Voters
from dforest.methods.stored import Sweep, pooled, store_of, sum_tiles, sweep_of
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.memory import room_of
from dforest.run.passes import Part
from dforest.seeds import stream
from dforest.tree import leaves
from dforest.tree.binning import make_table

LOOKED_AT = 500  # rows whose pairs tell how far predictions move with the pool


def fit(recipe: Recipe, X, given: Given, runner: Here | Cluster, old=None) -> Forest:
    """Grow and tabulate a forest.

    Parameters
    ----------
    X : (n, p) ndarray or CSR
    given : Given
        Checked distances between the n rows, held or stored.
    old : Forest, optional
        A forest of the same recipe with fewer trees, whose trees are kept.
    """
    if given.is_stored:
        _check_memory(recipe, given, runner)
    forest = _grow_and_look(recipe, X, given, runner, old)  # the pool is let go of at its end
    if forest.tables:
        return forest
    return _tabulate_any(forest, X, given, recipe.leaf_rows, runner, "tabulate-leaves")


def _check_memory(recipe: Recipe, given: Given, runner) -> None:
    """Refuse a fit that no task can hold, before anything is read."""
    room, pool = room_of(runner), recipe.pool_size or given.n_rows
    needed = stored_cost(store_of(given), recipe, pool, room).memory
    if needed > room.per_task:
        raise SpecError(
            f"pool_size: a task on a pool of {pool:,} rows would take {needed:,} bytes, but may "
            f"take {room.per_task:,}; lower pool_size or table_budget, or give more memory"
        )


def _grow_and_look(recipe: Recipe, X, given: Given, runner, old) -> Forest:
    """All that needs the pool alone: trees, their leaf tables if it has all votes, the report."""
    n, pool = X.shape[0], draw_pool(recipe, X.shape[0])
    rows = None if len(pool) == n else pool
    with _drawn(given, pool, runner) as within:
        drawn_from = X if rows is None else X[pool]
        material = Material(drawn_from, within, _codes(recipe, drawn_from))
        begun = len(old.trees) if old else 0
        own = dataclasses.replace(recipe, pool_size=None)
        trees = (old.trees if old else []) + grow_forest(own, material, begun, runner)
        forest = Forest(recipe, n, X.shape[1], trees, [], given.notion, *nothing_yet())
        if rows is None or recipe.leaf_rows == "in_bag":
            forest = tabulate(forest, X, within, recipe.leaf_rows, runner, pool=rows)
        if rows is not None and given.notion == "precomputed":
            forest.pool_report = _look(forest, X, material, runner)
    return forest


def nothing_yet() -> tuple[np.ndarray, np.ndarray]:
    """Fallbacks and leaves of a forest without tables."""
    return np.empty(0, np.int64), np.empty((0, 0), np.int32)


def refit(forest: Forest, X, given: Given, leaf_rows: str, runner: Here | Cluster) -> Forest:
    """The same trees with new leaf tables, from rows that may be others, and their distances."""
    n = X.shape[0]
    if leaf_rows != "all" and n != forest.n_rows:
        raise DataError(
            f'leaf_rows="{leaf_rows}" needs the {forest.n_rows} rows of the fit, got {n} rows; '
            'use leaf_rows="all" for other rows'
        )
    return _tabulate_any(forest, X, given, leaf_rows, runner, "refit-leaves")


@contextlib.contextmanager
def _drawn(given: Given, pool: np.ndarray, runner) -> Iterator[Given]:
    """Distances within the pool, at hand as long as the context lasts."""
    if given.is_stored:
        with pooled(given, pool, runner) as within:
            yield within
    elif len(pool) == given.n_rows:
        yield given
    else:
        yield NOTIONS[given.notion].take(given, pool)


def _codes(recipe: Recipe, X):
    return make_table(
        X,
        max_bins=recipe.max_bins,
        row_major=X.shape[0] > BLOCK_ROWS,
        keep_values=recipe.projections == "sparse",
    )


# Tables of more rows than the pool ---------------------------------------------------------------


def _tabulate_any(forest: Forest, X, given: Given, leaf_rows: str, runner, name: str) -> Forest:
    if given.is_stored:
        return _tabulate_stored(forest, X, given, leaf_rows, runner, name)
    return tabulate(forest, X, given, leaf_rows, runner, name=name)


def _tabulate_stored(forest: Forest, X, given: Given, leaf_rows: str, runner, name: str) -> Forest:
    """Route all rows, then add up the matrix tile by tile."""
    recipe, groups = forest.recipe, groups_of(0, len(forest.trees))
    material = Material(X, given, trees=forest.trees)
    routing = over_trees("route-rows", functools.partial(_route), groups, material, runner)
    leaf = np.concatenate([part["leaves"] for part in routing], axis=1)
    pool, limit = draw_pool(recipe, forest.n_rows), max_cells(recipe.table_budget, len(leaf.T))
    votes, cells = [], []
    for t, tree in enumerate(forest.trees):
        rows, weights = voters(recipe, t, pool, len(leaf), leaf_rows)
        votes.append(Voters(rows, leaf[rows, t], weights))
        cells.append(leaves.cells_within(tree, limit))
    sweep = sweep_of(given, votes, cells, recipe.self_pairs)
    groups = groups_within(sweep.n_cells, given.facts["has_unknown"], _budget(sweep, runner))
    keep = kept(sweep, name, groups)
    tables, fallbacks = [], []
    for group, sums in zip(groups, sum_tiles(sweep, groups, runner, name, keep), strict=True):
        for t, own in zip(group, sums, strict=True):
            shape, scale = leaves.shape_of(forest.trees[t]), float(sweep.scale[t])
            table, n_filled = leaves.matrix_table(shape, cells[t], own, scale)
            tables.append(table)
            fallbacks.append(n_filled)
    return with_tables(forest, tables, np.array(fallbacks), leaf, given.notion)


def _route(group: range, *, source: Held | Mapped) -> Part:
    """Task: the leaf of each row in some trees."""
    material = source.open()
    return {"leaves": route_all([material.trees[t] for t in group], material.X)}


def _budget(sweep: Sweep, runner) -> int:
    """Bytes that the sums of a group of trees may take, with all their copies."""
    room, store = room_of(runner), store_of(sweep.given)
    block = block_memory(sweep.side, store.tile, store.symmetric)
    most = COPIES * sum_bytes(int(sweep.n_cells.max()), sweep.given.facts["has_unknown"])
    if block + most > room.per_task:
        raise SpecError(
            f"leaf tables: a task would take {block + most:,} bytes, {block:,} of them for a block "
            f"of distances, but may take {room.per_task:,}; lower table_budget, or give more memory"
        )
    return room.per_task - block


# How far the pool decides ------------------------------------------------------------------------


def _look(forest: Forest, X, material: Material, runner) -> dict[str, float]:
    """Compare trees grown on the pool with trees grown on half of it.

    Both are tabulated from the rows they drew, and asked for the pairs of some rows. Had the pool
    no influence, answers would differ by what trees differ by chance.
    """
    n_pool, recipe = material.given.n_rows, forest.recipe
    n_trees, n_half = min(len(forest.trees), LOOKING), max(1, n_pool // 2)
    whole = dataclasses.replace(recipe, pool_size=None, n_estimators=n_trees, leaf_rows="in_bag")
    draws = min(recipe.n_draws, n_half)
    half = dataclasses.replace(whole, pool_size=n_half, n_draws=draws)
    rows = np.arange(X.shape[0])
    if len(rows) > LOOKED_AT:
        rows = np.sort(stream(recipe.seed, "look").choice(len(rows), LOOKED_AT, replace=False))
    means, variances = [], []
    for own, trees in ((whole, forest.trees[:n_trees]), (half, None)):
        trees = grow_forest(own, material, 0, runner, name="look-grow") if trees is None else trees
        small = Forest(own, n_pool, forest.n_features, trees, [], "precomputed", *nothing_yet())
        small = tabulate(small, material.X, material.given, "in_bag", runner, name="look-tabulate")
        reached = route_all(trees, X[rows])
        mean, std = pairwise(Asked(small, reached), Here(1), with_std=True)
        means.append(mean)
        variances.append(np.nanmean(np.square(np.asarray(std))) / n_trees)
    return {
        "pool": n_pool,
        "half": n_half,
        "trees": n_trees,
        "moved": float(np.sqrt(np.nanmean((means[0] - means[1]) ** 2))),
        "by_chance": float(np.sqrt(sum(variances))),
        "spread": float(np.nanstd(means[0])),
    }
