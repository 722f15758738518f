"""Sums over trees for all pairs of two blocks of rows.

A tree's answer depends on the two leaves alone. So trees are taken in groups: of each, the means of
the leaves that occur are read once (`write_grid`), and spread out over a strip of columns once for
each *different* leaf of the rows; what is left for a pair and a tree is one addition along a slice.
Every pair adds up its trees in their order, so the bits do not depend on blocks.
"""

import numpy as np

from dforest.jit import jit

GROUP = 4  # trees added in one go over the sums
STRIP = 256  # columns: rows of that length stay in the nearest caches


@jit
def seats(leaf, cell):
    """Different leaves of rows (n,), ascending, one for each cell; and each row's place among them.

    Places (n,) int32 count from 1: place 0 belongs to rows that a tree does not answer for. cell
    (L,) ascending: leaves of one cell answer alike.
    """
    seen = np.full(cell[-1] + 1, -1, np.int64)
    for i in range(len(leaf)):
        seen[cell[leaf[i]]] = leaf[i]
    leaves, n = np.empty(min(len(leaf), len(seen)), np.int64), 0
    for c in range(len(seen)):
        if seen[c] >= 0:
            leaves[n] = seen[c]
            n += 1
            seen[c] = n
    place = np.empty(len(leaf), np.int32)
    for i in range(len(leaf)):
        place[i] = seen[cell[leaf[i]]]
    return leaves[:n], place


@jit
def add_group(grids, n_whole, n_masked, ones, whole, masked, room, total):
    """Add what `GROUP` trees say of each pair to ``total`` (a, b) float64, tree by tree.

    grids : (GROUP, rows, 1 + columns)
        Means of the different leaves; column 0 is zero.
    n_whole, n_masked : (GROUP,) int64
        Leaves that are asked about the columns ``whole`` and, after them, about those ``masked``:
        (GROUP, b) places in the grid.
    ones : (GROUP, a) int32
        Place of each row: 0 for none, then the leaves asked whole, then those asked masked.
    room : (GROUP, 1 + rows, strip)
        To spread out means for so many columns at once, best `STRIP`.
    """
    room[:, 0] = 0.0
    for left in range(0, total.shape[1], room.shape[2]):
        right = min(left + room.shape[2], total.shape[1])
        for g in range(GROUP):
            n, m = n_whole[g], n_masked[g]
            _spread(grids[g, :n], whole[g, left:right], room[g, 1:])
            _spread(grids[g, :m], masked[g, left:right], room[g, 1 + n :])
        for i in range(total.shape[0]):
            row = total[i, left:right]
            a, b = room[0, ones[0, i]], room[1, ones[1, i]]
            c, d = room[2, ones[2, i]], room[3, ones[3, i]]
            for v in range(len(row)):
                row[v] = (((row[v] + a[v]) + b[v]) + c[v]) + d[v]


@jit
def _spread(grid, seat, out):
    for k in range(len(grid)):
        values, row = grid[k], out[k]
        for v in range(len(seat)):
            row[v] = values[seat[v]]


@jit
def place(out, rows, columns, values):
    """Write ``out[rows[i], columns[j]] = values[i, j]``: what `numpy.ix_` does, more slowly."""
    for i in range(len(rows)):
        row = out[rows[i]]
        for j in range(len(columns)):
            row[columns[j]] = values[i, j]
