"""Distances read from a matrix: any sign, any diagonal, NaN where unknown.

A block of z holds the rows of a subtree. Columns that leave a node are dropped from its rows only
now and then: until then they weigh nothing. Each row of z is thus contiguous at every node, which
is what the loops of `dforest.tree.scan` live on, and is never moved in memory.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.criteria.verbs import (
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

ROUNDING = 1.001  # room for values that the grid rounds up before they are weighted
DENSE = 0.75  # copying columns costs as much as scanning them for three features


class Precomputed(NamedTuple):
    """z read from a matrix, O(k^2) a column. Unknown pairs count as the node's mean known pair.

    A node's own numbers are the columns ``a:b`` of z in which its rows hold their pairs.
    """

    z: np.ndarray  # (n, n) float32, symmetric
    slot: np.ndarray  # (n,) int64: row of z of each row, in node order
    place: np.ndarray  # (n,) int64: column of z of each row, in node order
    has_unknown: bool


def precomputed(z, has_unknown) -> Precomputed:
    """The criterion of a whole matrix ``z`` (n, n) float32."""
    every = np.arange(len(z))
    return Precomputed(z, every, every.copy(), bool(has_unknown))


@body(take, Precomputed)
def _(crit, rows):
    k = len(rows)
    z = np.empty((k, k), np.float32)
    slots, places = crit.slot[rows], crit.place[rows]
    for i in range(k):
        source, target = crit.z[slots[i]], z[i]
        for j in range(k):
            target[j] = source[places[j]]
    return Precomputed(z, np.arange(k), np.arange(k), crit.has_unknown)


@body(start, Precomputed)
def _(crit):
    return 0, len(crit.z)


@body(settled, Precomputed)
def _(crit, node):
    return node.hi - node.lo < 2


@jit
def _mean_known(crit, weights, node):
    """Mean of the node's known pairs of different rows, 0 if there is none."""
    total, known = 0.0, 0.0
    w = np.zeros(node.b - node.a)
    for i in range(node.lo, node.hi):
        w[crit.place[i] - node.a] = weights[i]
    for i in range(node.lo, node.hi):
        row, own = crit.z[crit.slot[i], node.a : node.b], crit.place[i] - node.a
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
    """Power of two that turns the node's z, times a weight, into whole numbers below 2**23."""
    top = np.zeros(1, np.int32)
    for i in range(node.lo, node.hi):
        top[0] = max(
            top[0], largest_bits(crit.z[crit.slot[i], node.a : node.b].view(np.int32))
        )
    largest = np.float64(top.view(np.float32)[0]) * weights[node.lo : node.hi].max()
    if largest == 0.0:
        return 1.0
    return 2.0 ** (GRID_BITS - 1 - np.floor(np.log2(ROUNDING * largest)))


@body(pair_sums, Precomputed)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    k, width = node.hi - node.lo, node.b - node.a
    fill = _mean_known(crit, weights, node) if crit.has_unknown else 0.0
    scale = _grid(crit, weights, node)
    w = np.zeros(width, np.int32)  # a column that has left the node keeps weight 0
    for i in range(k):
        w[crit.place[node.lo + i] - node.a] = np.int32(weights[node.lo + i])
    places = np.zeros((len(n_ranks), width), np.int32)  # in the order of each column
    for c in range(len(n_ranks)):
        left[c, : n_ranks[c]] = 0.0
        right[c, : n_ranks[c]] = 0.0
        order = order_of(ranks[c], n_ranks[c])
        for turn in range(k):
            places[c, crit.place[node.lo + order[turn]] - node.a] = turn
    snapped = np.empty(width, np.int32)
    for i in range(k):
        own = crit.place[node.lo + i] - node.a
        row = crit.z[crit.slot[node.lo + i], node.a : node.b]
        snap(row, np.float32(scale), np.float32(fill), w, snapped)
        total, weight = sum_row(snapped), weights[node.lo + i]
        for c in range(len(n_ranks)):
            before = sum_earlier(snapped, places[c], places[c, own])
            add_earlier(weight, before, total, snapped[own], ranks[c, i], left[c], right[c])
    for c in range(len(n_ranks)):
        m = n_ranks[c]
        accumulate(left[c, :m], right[c, :m])
        count_rows(weights, node, ranks[c], count[c, :m])
        for r in range(m):
            left[c, r] /= scale
            right[c, r] /= scale


@jit
def _keep_columns(crit, lo, hi, a, b):
    """The columns of rows ``lo:hi``, now in ``a:b``: drop those of other rows when it pays."""
    if hi - lo > DENSE * (b - a):
        return a, b
    wanted = np.sort(crit.place[lo:hi])
    for i in range(lo, hi):
        row = crit.z[crit.slot[i], a:b]
        for k in range(len(wanted)):
            row[k] = row[wanted[k] - a]  # never overtakes: wanted[k] - a >= k
    number = np.empty(b - a, np.int64)
    for k in range(len(wanted)):
        number[wanted[k] - a] = a + k
    for i in range(lo, hi):
        crit.place[i] = number[crit.place[i] - a]
    return a, a + len(wanted)


@body(part, Precomputed)
def _(crit, weights, node, goes_left):
    part_rows(crit.slot, node.lo, node.hi, goes_left)
    part_rows(crit.place, node.lo, node.hi, goes_left)
    middle = node.lo + goes_left.sum()
    return (
        _keep_columns(crit, node.lo, middle, node.a, node.b),
        _keep_columns(crit, middle, node.hi, node.a, node.b),
    )
