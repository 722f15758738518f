"""Distances read from a matrix: any sign, any diagonal, NaN where unknown.

A node reads whole rows of z: columns of rows that are not its own weigh nothing. When they are too
many, its own are copied together (`_keep_columns`). So a row of z is contiguous at every node,
which is what the loops of `dforest.tree.scan` live on.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.criteria.verbs import (
    Node,
    accumulate,
    add_earlier,
    body,
    count_rows,
    order_of,
    pair_sums,
    part,
    part_rows,
    settled,
    start,
    take,
)
from dforest.tree.scan import GRID_BITS, largest_bits, snap, sum_earlier, sum_row

DENSE = 0.6  # below this share of live columns, copying them costs less than scanning the dead


class Precomputed(NamedTuple):
    """z read from a matrix, O(k^2) a column. Unknown pairs count as the node's mean known pair.

    A node's own numbers: ``a`` is 1 once its rows of z are copied to ``own``, else 0; ``b`` is the
    number of columns in which they hold their pairs.
    """

    origin: np.ndarray  # (n, n) float32, symmetric, only read
    own: np.ndarray  # room to copy rows to: (k, k) float32 for nodes of up to k rows
    source: np.ndarray  # (n,) int64: row and column of origin of each row, in node order
    number: np.ndarray  # (n,) int64: its row of own
    place: np.ndarray  # (n,) int64: its column at present
    root: np.ndarray  # (2,) int64: the root's own numbers
    has_unknown: bool


def precomputed(z, has_unknown, own) -> Precomputed:
    """The criterion of a whole matrix ``z`` (n, n) float32; ``own`` as in `Precomputed`."""
    every = np.arange(len(z))
    root = np.array([0, len(z)])
    return Precomputed(z, own, every, every.copy(), every.copy(), root, bool(has_unknown))


@jit
def _row(crit, i, node):
    """Row of z of the node's row i, with the columns of the node and perhaps more."""
    if node.a == 0:
        return crit.origin[crit.source[i], : node.b]
    return crit.own[crit.number[i], : node.b]


@jit
def _keep_columns(crit, node):
    """Drop columns of rows that are not the node's, when it pays; the node's own numbers then."""
    k = node.hi - node.lo
    if k > DENSE * node.b:
        return node.a, node.b
    wanted = np.sort(crit.place[node.lo : node.hi]).astype(np.uint32)  # unsigned: faster to index
    column = np.empty(node.b, np.int64)
    for c in range(k):
        column[wanted[c]] = c
    for i in range(node.lo, node.hi):
        row, kept = _row(crit, i, node), crit.own[crit.number[i]]
        for c in range(k):
            kept[c] = row[wanted[c]]  # may be the same row: never overtakes, as wanted[c] >= c
    for i in range(node.lo, node.hi):
        crit.place[i] = column[crit.place[i]]
    return 1, k


@body(take, Precomputed)
def _(crit, rows):
    source, root = crit.source[rows], np.array([0, len(crit.origin)])
    taken = Precomputed(
        crit.origin,
        crit.own,
        source,
        np.arange(len(rows)),
        source.copy(),
        root,
        crit.has_unknown,
    )
    root[0], root[1] = _keep_columns(taken, Node(0, len(rows), 0, len(crit.origin)))
    return taken


@body(start, Precomputed)
def _(crit):
    return crit.root[0], crit.root[1]


@body(settled, Precomputed)
def _(crit, node):
    return node.hi - node.lo < 2


@jit
def _mean_known(crit, weights, node):
    """Mean of the node's known pairs of different rows, 0 if there is none."""
    total, known = 0.0, 0.0
    w = np.zeros(node.b)
    for i in range(node.lo, node.hi):
        w[crit.place[i]] = weights[i]
    for i in range(node.lo, node.hi):
        row, own = _row(crit, i, node), crit.place[i]
        row_total, row_known = 0.0, 0.0
        for j in range(len(row)):
            if row[j] == row[j] and j != own:
                row_total += w[j] * row[j]
                row_known += w[j]
        total += weights[i] * row_total
        known += weights[i] * row_known
    return total / known if known > 0.0 else 0.0


@jit
def _grid(crit, weights, node):
    """Power of two that turns the node's z, times a weight, into whole numbers below 2**30."""
    top = np.zeros(1, np.int32)
    for i in range(node.lo, node.hi):
        top[0] = max(top[0], largest_bits(_row(crit, i, node).view(np.int32)))
    largest = np.float64(top.view(np.float32)[0]) * weights[node.lo : node.hi].max()
    if largest == 0.0:
        return 1.0
    return 2.0 ** (GRID_BITS - 1 - np.floor(np.log2(largest)))


@body(pair_sums, Precomputed)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    k, place = node.hi - node.lo, crit.place[node.lo : node.hi]
    fill = _mean_known(crit, weights, node) if crit.has_unknown else 0.0
    scale = _grid(crit, weights, node)
    w = np.zeros(node.b, np.int32)  # a column that has left the node keeps weight 0
    for i in range(k):
        w[place[i]] = np.int32(weights[node.lo + i])
    turns = np.zeros((len(n_ranks), node.b), np.int32)  # places in the order of each column
    for c in range(len(n_ranks)):
        left[c, : n_ranks[c]] = 0.0
        right[c, : n_ranks[c]] = 0.0
        order = order_of(ranks[c], n_ranks[c])
        for turn in range(k):
            turns[c, place[order[turn]]] = turn
    snapped = np.empty(node.b, np.int32)
    for i in range(k):
        row, own = _row(crit, node.lo + i, node), place[i]
        snap(row, np.float32(scale), np.float32(fill), w, snapped)
        total, weight = sum_row(snapped), weights[node.lo + i]
        for c in range(len(n_ranks)):
            before = sum_earlier(snapped, turns[c], turns[c, own])
            add_earlier(weight, before, total, snapped[own], ranks[c, i], left[c], right[c])
    for c in range(len(n_ranks)):
        m = n_ranks[c]
        accumulate(left[c, :m], right[c, :m])
        count_rows(weights, node, ranks[c], count[c, :m])
        for r in range(m):
            left[c, r] /= scale
            right[c, r] /= scale


@body(part, Precomputed)
def _(crit, weights, node, goes_left):
    for rows in (crit.source, crit.number, crit.place):
        part_rows(rows, node.lo, node.hi, goes_left)
    middle = node.lo + goes_left.sum()
    left = _keep_columns(crit, Node(node.lo, middle, node.a, node.b))
    return left, _keep_columns(crit, Node(middle, node.hi, node.a, node.b))
