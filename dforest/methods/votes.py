"""What a forest predicts: its trees' votes, weighed by tree or, as KeRF does, by row.

By tree (a random forest), every tree says what the leaf of a row predicts, and the forest averages
them: KeRF, equation (5). By row ("kernel"), a tree counts as many times as rows vote in its leaf:
equations (10) and (12), the sum of Y K(x, X_i) over the sum of K(x, X_i). Empty leaves then say
nothing; a row that reaches none but empty leaves gets the average by tree.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dforest.jit import jit
from dforest.methods.forest import TableOptions, voters
from dforest.methods.model import Forest
from dforest.methods.notions import NOTIONS, Given, Voters
from dforest.run.here import Here
from dforest.run.passes import Part, Pass
from dforest.tree.leaves import Own, seats, value_at
from dforest.tree.route import route

ROW_BLOCK = 4_096  # rows that are predicted at once
TREE_BLOCK = 16  # trees that answer for rows out of bag at once


class Outside(NamedTuple):
    """Predictions of rows that were fitted, by the trees that were not grown on them."""

    value: np.ndarray  # (n, q) float64; NaN where there is no such tree
    n_trees: np.ndarray  # (n,) int64: how many such trees there are


# Any rows ----------------------------------------------------------------------------------------


def predict(forest: Forest, X, runner: Here) -> np.ndarray:
    """Predict every row of ``X``: shares of classes, means or medians, (a, q) float64."""
    blocks = row_blocks(X.shape[0], runner)
    job = Pass("predict", lambda rows: {"value": _predict(forest, X[rows])}, [[b] for b in blocks])
    return np.concatenate([part["value"] for part in runner.run(job)])


def row_blocks(n: int, runner: Here) -> list[slice]:
    """Blocks of rows: some for each thread, none larger than `ROW_BLOCK`."""
    step = int(np.clip(-(-n // runner.threads), 1, ROW_BLOCK))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def _predict(forest: Forest, X) -> np.ndarray:
    X = X.toarray() if sparse.issparse(X) else X
    sums = _no_sums(forest, len(X))
    for tree, table in zip(forest.trees, forest.tables, strict=True):
        _add(table.value, table.weight, route(tree, X), *sums)
    return _finish(sums)


class _Sums(NamedTuple):
    """Votes so far."""

    by_tree: np.ndarray  # (b, q) float64: each tree's value
    trees: np.ndarray  # (b,) float64
    by_row: np.ndarray  # (b, q) float64: each tree's value, times the rows that vote; or (b, 0)
    rows: np.ndarray  # (b,) float64


def _no_sums(forest: Forest, n: int) -> _Sums:
    q = forest.tables[0].value.shape[1]
    by_row = q if forest.recipe.weighting == "kernel" else 0
    return _Sums(np.zeros((n, q)), np.zeros(n), np.zeros((n, by_row)), np.zeros(n))


@jit
def _add(value, weight, leaf, by_tree, trees, by_row, rows):
    """Add the votes of one tree, whose leaves ``leaf`` (b,) the rows reach."""
    for i in range(len(leaf)):
        at = leaf[i]
        trees[i] += 1.0
        for q in range(by_tree.shape[1]):
            by_tree[i, q] += value[at, q]
        if by_row.shape[1] > 0:
            rows[i] += weight[at]
            for q in range(by_row.shape[1]):
                by_row[i, q] += weight[at] * value[at, q]


def _finish(sums: _Sums) -> np.ndarray:
    """Averages (b, q); NaN where no tree has voted."""
    with np.errstate(invalid="ignore"):
        average = sums.by_tree / sums.trees[:, None]
    if sums.by_row.shape[1]:
        np.divide(sums.by_row, sums.rows[:, None], out=average, where=sums.rows[:, None] > 0.0)
    return average


# Rows that were fitted ---------------------------------------------------------------------------


def out_of_bag(forest: Forest, given: Given, runner: Here) -> Outside:
    """Predict every row that was fitted by the trees that were not grown on it.

    Where such rows vote in the leaves (honest trees), each row's own vote is left out.

    Parameters
    ----------
    given : Given
        The responses that the forest was fitted on.
    """
    n, trees = forest.n_rows, range(len(forest.trees))
    sums, count = _no_sums(forest, n), np.zeros(n, np.int64)
    blocks = row_blocks(n, runner)
    for begin in trees[::TREE_BLOCK]:
        sides = [side_of(forest, given, t) for t in trees[begin : begin + TREE_BLOCK]]
        step = functools.partial(_add_outside, given=given, sides=sides, sums=sums)
        job = Pass("predict-out-of-bag", step, [[block] for block in blocks])
        for rows, part in zip(blocks, runner.run(job), strict=True):
            count[rows] += part.pop("count")
            for name, value in part.items():
                getattr(sums, name)[rows] = value
    return Outside(_finish(sums), count)


class Side(NamedTuple):
    """One tree, as seen by the rows that it was fitted on."""

    leaf: np.ndarray  # (n,) int32
    outside: np.ndarray  # (n,) bool: the tree was not grown on the row
    own: np.ndarray  # (n,) float64: how often the row votes
    table: Any  # of all nodes: `ClassTable`, `MomentTable` or `ValueTable`


def side_of(forest: Forest, given: Given, t: int) -> Side:
    """Tree ``t`` with its votes, tabulated again from the responses."""
    recipe, n, leaf = forest.recipe, forest.n_rows, forest.leaves[:, t]
    outside, own = np.ones(n, bool), np.zeros(n)
    outside[forest.bag(t)[0]] = False
    rows, weights = voters(recipe, t, forest.pool, n, recipe.leaf_rows)
    own[rows] = weights
    table, _ = NOTIONS[given.notion].table(
        given, forest.trees[t], Voters(rows, leaf[rows], weights), TableOptions(True, 1)
    )
    return Side(leaf, outside, own, table)


def _add_outside(rows: slice, *, given: Given, sides: list[Side], sums: _Sums) -> Part:
    """Task: add the votes of some trees for some rows."""
    by_tree, trees, by_row, mass = (array[rows].copy() for array in sums)
    count = np.zeros(len(trees), np.int64)
    for side in sides:
        asked = np.flatnonzero(side.outside[rows])
        count[asked] += 1
        own = Own(side.own[rows][asked], given.arrays["y"][rows][asked])
        node = side.table.node[side.leaf[rows][asked]]
        seat = seats(side.table, node, own)
        rest = side.table.weight[seat] - own.weight
        told = rest > 0.0  # false only where the row votes alone in the whole tree
        value, asked = value_at(side.table, seat, own)[told], asked[told]
        by_tree[asked] += value
        trees[asked] += 1.0
        if by_row.shape[1]:
            weight = np.where(seat == node, rest, 0.0)[told]
            by_row[asked] += weight[:, None] * value
            mass[asked] += weight
    return {"by_tree": by_tree, "trees": trees, "by_row": by_row, "rows": mass, "count": count}
