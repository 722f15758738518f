"""Tables of distances read from a matrix: sums over the pairs of every two leaves, SMERF eq. (2).

A tree of L leaves takes 2 L (L + 1) bytes. Beyond a budget, leaves are tabulated at ancestors
(`cells_within`), those kept apart that gained most.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.layout import Tree, best_first, leaf_ranges, n_leaves, pruned
from dforest.tree.leaves.verbs import Shape, body


class MatrixTable(NamedTuple):
    """Mean distances between cells (leaves, or ancestors of several), lower triangle by rows."""

    cell: np.ndarray  # (L,) int32: cell of each leaf
    mean: np.ndarray  # (C (C + 1) / 2,) float32; none is NaN
    known: np.ndarray  # the same shape, float32: known pairs, 0 where the mean is an ancestors'


class MatrixSums(NamedTuple):
    """Sums of one tree over some pairs; those of disjoint pairs add."""

    total: np.ndarray  # (C (C + 1) / 2,) int64, z on the grid, ordered pairs
    known: np.ndarray  # the same shape, int64: pairs of drawn rows whose z is known


@jit
def triangle(one, other):
    """Place of the pair of two cells in a lower triangle stored row by row."""
    return one * (one + 1) // 2 + other if one >= other else other * (other + 1) // 2 + one


def cells_within(tree: Tree, max_cells: int) -> np.ndarray:
    """Cell of each leaf, (L,) int32: itself if at most ``max_cells`` there are, else an ancestor."""
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


@jit
def add_square(z, rows, cell, weights, scale, self_pairs, total, known):
    """Add all pairs among some rows: z (n, n) float32 symmetric, NaN where unknown.

    rows (k,) int64 in the order of their cells, cell (k,) int32 ascending, weights (k,) int64;
    total and known (C (C + 1) / 2,) int64 are added to. Every unordered pair is read once.
    """
    ends = np.flatnonzero(np.append(cell[1:] != cell[:-1], True)) + 1
    columns = rows.astype(np.uint32)
    for a in range(len(rows)):
        row, begin, line = z[rows[a]], 0, np.int64(cell[a]) * (cell[a] + 1) // 2
        for end in ends:
            sum_z, sum_known = np.int64(0), np.int64(0)
            for b in range(begin, min(end, a)):
                value = row[columns[b]]
                if value == value:
                    sum_z += weights[b] * np.int64(np.rint(value * scale))
                    sum_known += weights[b]
            at = line + cell[begin]
            if end > a:  # its own cell: both orders of a pair, and the row with itself
                total[at] += 2 * weights[a] * sum_z
                known[at] += 2 * weights[a] * sum_known
                value = row[columns[a]]
                if self_pairs and value == value:
                    total[at] += weights[a] * weights[a] * np.int64(np.rint(value * scale))
                    known[at] += weights[a] * weights[a]
                break
            total[at] += weights[a] * sum_z
            known[at] += weights[a] * sum_known
            begin = end


def square_sums(cell, n_cells, z, rows, weights, scale, self_pairs) -> MatrixSums:
    """Sums over all pairs of ``rows`` (k,) int64, whose cells are ``cell`` (k,)."""
    order = np.lexsort((rows, cell))
    sums = MatrixSums(*np.zeros((2, n_cells * (n_cells + 1) // 2), np.int64))
    ordered = rows[order].astype(np.int64), cell[order], weights[order].astype(np.int64)
    add_square(z, *ordered, float(scale), self_pairs, *sums)
    return sums


def matrix_table(shape: Shape, cell, sums: MatrixSums, scale: float) -> tuple[MatrixTable, int]:
    """Turn sums into means; how many pairs of cells had no known pair is told beside them.

    Such a pair takes the mean of its parents' pair, both lifted together until some z is known.
    """
    mean = np.full(len(sums.total), np.nan, np.float32)
    np.divide(sums.total / scale, sums.known, out=mean, where=sums.known > 0, casting="unsafe")
    unknown = np.flatnonzero(sums.known == 0)
    if len(unknown):
        fill_from_parents(unknown, mean, cell, sums.total, sums.known, scale, *shape)
    return MatrixTable(cell, mean, sums.known.astype(np.float32)), len(unknown)


@jit
def _running(values, n):
    """Sums of all rectangles from the corner: lower triangle -> (n + 1, n + 1), int64."""
    run = np.zeros((n + 1, n + 1), np.int64)
    for i in range(n):
        for j in range(n):
            around = run[i, j + 1] + run[i + 1, j] - run[i, j]
            run[i + 1, j + 1] = values[triangle(i, j)] + around
    return run


@jit
def fill_from_parents(unknown, mean, cell, total, known, scale, node, first, stop, parent):
    """Write the means of ``unknown`` places of the triangle from the nearest known ancestors."""
    n = cell[-1] + 1
    totals, knowns = _running(total, n), _running(known, n)
    leaf = np.searchsorted(cell, np.arange(n))  # first leaf of each cell
    for at in unknown:
        one = np.int64(np.floor((np.sqrt(8.0 * at + 1.0) - 1.0) / 2.0))
        while one * (one + 1) // 2 > at:
            one -= 1
        while (one + 1) * (one + 2) // 2 <= at:
            one += 1
        other = at - one * (one + 1) // 2
        a, b = node[leaf[one]], node[leaf[other]]
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
