"""Tables of distances read from a matrix: sums over the pairs of every two leaves, SMERF eq. (2).

A tree of L leaves takes 4 L (L + 1) bytes, and twice that beside it while it is summed. Beyond a
budget, leaves are tabulated at ancestors (`cells_within`), those kept apart that gained most.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.layout import Tree, best_first, leaf_ranges, n_leaves, pruned
from dforest.tree.leaves.verbs import WHOLE, Shape, body
from dforest.tree.scan import MAX_EXPONENT

STRIP = 2_048  # columns of z added up together


class MatrixTable(NamedTuple):
    """Mean distances between cells (leaves, or ancestors of several), lower triangle by rows."""

    cell: np.ndarray  # (L,) int32: cell of each leaf
    mean: np.ndarray  # (C (C + 1) / 2,) float32; NaN only if the tree knows no z
    known: np.ndarray  # the same shape, float32: known pairs, 0 where the mean is an ancestor's


class MatrixSums(NamedTuple):
    """Sums of one tree over some pairs; those of disjoint pairs add."""

    total: np.ndarray  # (C (C + 1) / 2,) int64, z on the grid, ordered pairs
    known: np.ndarray  # the same shape, int64: pairs of drawn rows whose z is known


@jit
def triangle(one, other):
    """Place of the pair of two cells in a lower triangle stored row by row."""
    return one * (one + 1) // 2 + other if one >= other else other * (other + 1) // 2 + one


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


def matrix_scale(largest: float, n_drawn: float) -> float:
    """Grid on which z is summed: as fine as sums below 2**62 allow."""
    exponent = np.ceil(np.log2(largest)) if largest > 0 else 0.0
    bits = WHOLE - 2.0 * np.ceil(np.log2(max(n_drawn, 1.0)))
    return 2.0 ** min(bits - exponent, MAX_EXPONENT)


@jit
def add_row(row, weight, scale, apart, known, has_unknown):
    """Add ``weight`` times a part of a row of z to ``apart`` (m,) int64, its known z to ``known``.

    As fast as memory is read.
    """
    if not has_unknown:
        for j in range(len(apart)):
            apart[j] += weight * np.int64(np.rint(row[j] * scale))
        return
    for j in range(len(apart)):
        is_known = row[j] == row[j]
        value = row[j] if is_known else np.float32(0.0)
        apart[j] += weight * np.int64(np.rint(value * scale))
        known[j] += weight if is_known else 0


@jit
def add_square(z, rows, begin, weights, scale, self_pairs, has_unknown, total, known):
    """Add all pairs among some rows: z (n, n) float32 symmetric, NaN where unknown.

    rows (k,) int64 in the order of their cells, those of cell c in ``begin[c]:begin[c + 1]``,
    weights (k,) int64; total and known (C (C + 1) / 2,) int64 are added to. Rows of one cell are
    added up first, as whole rows, so that columns are looked up once a cell and not once a row.
    """
    n, factor = z.shape[1], np.float32(scale)
    apart, counted = np.empty(n, np.int64), np.empty(n, np.int64)
    for one in range(len(begin) - 1):
        if begin[one] == begin[one + 1]:
            continue
        apart[:] = 0
        counted[:] = 0
        drawn = weights[begin[one] : begin[one + 1]].sum()
        for left in range(0, n, STRIP):  # the sums of a strip stay in the nearest cache
            end = min(left + STRIP, n)
            sums, knowns = apart[left:end], counted[left:end]
            for a in range(begin[one], begin[one + 1]):
                add_row(z[rows[a], left:end], weights[a], factor, sums, knowns, has_unknown)
        line = one * (one + 1) // 2
        for other in range(one + 1):
            sum_z, sum_known = np.int64(0), np.int64(0)
            for b in range(begin[other], begin[other + 1]):
                sum_z += weights[b] * apart[rows[b]]
                sum_known += weights[b] * (counted[rows[b]] if has_unknown else drawn)
            total[line + other] += sum_z
            known[line + other] += sum_known
        if not self_pairs:
            for a in range(begin[one], begin[one + 1]):
                own = z[rows[a], rows[a]]
                if own == own:
                    square = weights[a] * weights[a]
                    total[line + one] -= square * np.int64(np.rint(own * factor))
                    known[line + one] -= square


def square_sums(cell, n_cells, z, rows, weights, scale, self_pairs, has_unknown) -> MatrixSums:
    """Sums over all pairs of ``rows`` (k,) int64, whose cells are ``cell`` (k,)."""
    order = np.lexsort((rows, cell))
    begin = np.searchsorted(cell[order], np.arange(n_cells + 1))
    sums = MatrixSums(*np.zeros((2, n_cells * (n_cells + 1) // 2), np.int64))
    ordered = rows[order].astype(np.int64), begin, weights[order].astype(np.int64)
    z = z.view(np.ndarray)
    z.flags.writeable = False  # one compiled form for arrays and mapped files
    add_square(z, *ordered, float(scale), self_pairs, has_unknown, *sums)
    return sums


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
