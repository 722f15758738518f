"""Tables of distances read from a matrix: sums over the pairs of every two leaves, SMERF eq. (2).

A tree of L leaves takes 4 L (L + 1) bytes; its sums take 8 L^2, and as much again where some z is
unknown. Beyond a budget, leaves are tabulated at ancestors (`cells_within`), those kept apart that
gained most.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.layout import Tree, best_first, leaf_ranges, n_leaves, pruned
from dforest.tree.leaves.sums import MatrixSums, triangle
from dforest.tree.leaves.verbs import Shape, body


class MatrixTable(NamedTuple):
    """Mean distances between cells (leaves, or ancestors of several), lower triangle by rows."""

    cell: np.ndarray  # (L,) int32: cell of each leaf
    mean: np.ndarray  # (C (C + 1) / 2,) float32; NaN only if the tree knows no z
    known: np.ndarray  # the same shape, float32: known pairs, 0 where the mean is an ancestor's


def cells_within(tree: Tree, max_cells: int) -> np.ndarray:
    """Cell of each leaf, (L,) int32: its own, or one shared beyond ``max_cells``."""
    if n_leaves(tree) <= max_cells:
        return np.arange(n_leaves(tree), dtype=np.int32)
    kept = best_first(tree, max_cells)
    first, stop = leaf_ranges(tree.right)
    small = pruned(tree, kept)
    inner = np.zeros(len(kept), bool)
    inner[0] = True
    for node in np.flatnonzero(kept):
        inner[[node + 1, tree.right[node]]] = True
    ends = np.flatnonzero(inner & ~kept)
    return np.repeat(np.arange(n_leaves(small), dtype=np.int32), stop[ends] - first[ends])


def matrix_table(shape: Shape, cell, sums: MatrixSums, scale: float) -> tuple[MatrixTable, int]:
    """Turn sums into means; how many pairs of cells had no known pair is told beside them.

    Such a pair takes the mean of its parents' pair, both lifted together until some z is known.
    """
    mean, known = np.empty((2, len(sums.total)), np.float32)
    divide(sums.total, sums.known, float(scale), mean, known)
    unknown = np.flatnonzero(known == 0)
    if len(unknown):
        fill_from_parents(unknown, mean, cell, sums.total, sums.known, scale, *shape)
    return MatrixTable(cell, mean, known), len(unknown)


@jit
def divide(total, known, scale, mean, count):
    """Write means and numbers of pairs as float32, NaN where no pair is known."""
    for at in range(len(total)):
        count[at] = known[at]
        mean[at] = total[at] / scale / known[at] if known[at] > 0 else np.nan


@jit
def _running(values, n):
    """Sums of all rectangles from the corner: triangle of n cells -> (n + 1, n + 1), int64."""
    run = np.zeros((n + 1, n + 1), np.int64)
    for i in range(n):
        for j in range(n):
            around = run[i, j + 1] + run[i + 1, j] - run[i, j]
            run[i + 1, j + 1] = values[triangle(i, j)] + around
    return run


@jit
def cell_nodes(cell, node, first, stop, parent):
    """Node of each cell, (C,) int64: the highest above no other leaves than the cell's."""
    tops = np.empty(cell[-1] + 1, np.int64)
    for leaf in range(len(cell) - 1, -1, -1):  # ends with the first leaf of each cell
        top = node[leaf]
        while top != 0:
            above = np.int64(parent[top])
            if cell[first[above]] != cell[leaf] or cell[stop[above] - 1] != cell[leaf]:
                break
            top = above
        tops[cell[leaf]] = top
    return tops


@jit
def fill_from_parents(unknown, mean, cell, total, known, scale, node, first, stop, parent):
    """Write the means of ``unknown`` places of the triangle from the nearest known ancestors."""
    n = cell[-1] + 1
    totals, knowns = _running(total, n), _running(known, n)
    tops = cell_nodes(cell, node, first, stop, parent)
    for at in unknown:
        one = np.int64(np.floor((np.sqrt(8.0 * at + 1.0) - 1.0) / 2.0))
        while one * (one + 1) // 2 > at:
            one -= 1
        while (one + 1) * (one + 2) // 2 <= at:
            one += 1
        other = at - one * (one + 1) // 2
        a, b = tops[one], tops[other]
        while a != 0 or b != 0:
            a, b = np.int64(parent[a]), np.int64(parent[b])
            top, bottom = cell[first[a]], cell[stop[a] - 1] + 1
            near, far = cell[first[b]], cell[stop[b] - 1] + 1
            pairs = (
                knowns[bottom, far] - knowns[top, far] - knowns[bottom, near] + knowns[top, near]
            )
            if pairs > 0:
                apart = totals[bottom, far] - totals[top, far]
                apart += totals[top, near] - totals[bottom, near]
                mean[at] = apart / scale / pairs
                break


@body(MatrixTable)
def _(table, one, other):
    at = triangle(np.int64(table.cell[one]), np.int64(table.cell[other]))
    return np.float64(table.mean[at]), np.float64(table.known[at])
