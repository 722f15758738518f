"""Distances read from a matrix: any sign, any diagonal, NaN where unknown.

A node reads whole rows of z: columns of rows that are not its own weigh nothing. When they are too
many, its own are copied together (`_copied`). So a row of z is contiguous at every node,
which is what the loops of `dforest.tree.scan` live on.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.criteria.verbs import (
    EXACT,
    FILLED,
    Node,
    accumulate,
    accuracy,
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
from dforest.tree.scan import ANY, GRID_BITS, MAX_EXPONENT, largest_bits, snap, sum_earlier

DENSE = 0.6  # below this share of live columns, copying them costs less than scanning the dead


class Precomputed(NamedTuple):
    """z read from a matrix, O(k^2) a column. Unknown pairs count as the node's mean known pair.

    A node's own numbers: whether its rows of z are copied to ``own``; the columns in which they
    hold their pairs; and the least e with no |z| of the node above 2**e.
    """

    origin: np.ndarray  # (n, n) float32, symmetric, only read
    own: np.ndarray  # room to copy rows to: (k, k) float32 for nodes of up to k rows
    source: np.ndarray  # (n,) int64: row and column of origin of each row, in node order
    number: np.ndarray  # (n,) int64: its row of own
    place: np.ndarray  # (n,) int64: its column at present
    root: np.ndarray  # (3,) int64: the root's own numbers, of all rows of origin at first
    has_unknown: bool


def precomputed(z, largest, has_unknown, own) -> Precomputed:
    """The criterion of a whole matrix ``z`` (n, n) float32, ``largest`` its largest known |z|."""
    every, root = np.arange(len(z)), np.array([0, len(z), _exponent(np.float64(largest))])
    return Precomputed(z, own, every, every.copy(), every.copy(), root, bool(has_unknown))


@jit
def _exponent(largest):
    """Least whole e with ``largest`` <= 2**e; 0 for 0."""
    return np.int64(np.ceil(np.log2(largest))) if largest > 0.0 else np.int64(0)


@jit
def _pairs(crit, node):
    """Where the node's rows are: a matrix, the number of its row for each, its columns."""
    if node.own[0] == 0:
        return crit.origin, crit.source[node.lo : node.hi], node.own[1]
    return crit.own, crit.number[node.lo : node.hi], node.own[1]


@jit
def _settle_in(crit, node):
    """A child's own numbers: drop columns of rows that are not its own, when it pays."""
    k = node.hi - node.lo
    if k <= DENSE * node.own[1]:
        return _copied(crit, node)
    z, slots, width = _pairs(crit, node)
    live = np.zeros(width, np.int32)
    for i in range(node.lo, node.hi):
        live[crit.place[i]] = ANY
    top, bits = np.zeros(1, np.int32), z.view(np.int32)
    for slot in slots:
        top[0] = max(top[0], largest_bits(bits, slot, live))
    return node.own[0], width, _exponent(np.float64(top.view(np.float32)[0]))


@jit
def _copied(crit, node):
    """Copy the pairs of a node's rows together; its own numbers then."""
    k = node.hi - node.lo
    z, slots, width = _pairs(crit, node)
    place, own, bits = crit.place[node.lo : node.hi], crit.own, crit.own.view(np.int32)
    wanted = np.sort(place).astype(np.uint32)  # unsigned: faster to index
    column = np.empty(width, np.int64)
    for c in range(k):
        column[wanted[c]] = c
    top, live = np.zeros(1, np.int32), np.full(k, ANY)
    for i in range(k):
        row, kept = slots[i], crit.number[node.lo + i]
        for c in range(k):
            own[kept, c] = z[row, wanted[c]]  # may be one row: never overtakes, as wanted[c] >= c
        top[0] = max(top[0], largest_bits(bits, kept, live))
        place[i] = column[place[i]]
    return np.int64(1), k, _exponent(np.float64(top.view(np.float32)[0]))


@body(take, Precomputed)
def _(crit, rows):
    source, root = crit.source[rows], crit.root.copy()
    taken = Precomputed(
        crit.origin,
        crit.own,
        source,
        np.arange(len(rows)),
        source.copy(),
        root,
        crit.has_unknown,
    )
    if len(rows) < len(crit.origin):
        whole = Node(0, len(rows), (np.int64(0), np.int64(len(crit.origin)), np.int64(0)))
        root[0], root[1], root[2] = _settle_in(taken, whole)
    return taken


@body(start, Precomputed)
def _(crit):
    return crit.root[0], crit.root[1], crit.root[2]


@body(accuracy, Precomputed)
def _(crit):
    return FILLED if crit.has_unknown else EXACT


@body(settled, Precomputed)
def _(crit, node):
    return node.hi - node.lo < 2


@jit
def _mean_known(crit, weights, node):
    """Mean of the node's known pairs of different rows, 0 if there is none."""
    z, slots, width = _pairs(crit, node)
    place, w = crit.place[node.lo : node.hi], weights[node.lo : node.hi]
    spread = np.zeros(width)
    for i in range(len(w)):
        spread[place[i]] = w[i]
    total, known = 0.0, 0.0
    for i in range(len(w)):
        row = z[slots[i], :width]
        row_total, row_known = 0.0, 0.0
        for j in range(width):
            if row[j] == row[j] and j != place[i]:
                row_total += spread[j] * row[j]
                row_known += spread[j]
        total += w[i] * row_total
        known += w[i] * row_known
    return total / known if known > 0.0 else 0.0


@body(pair_sums, Precomputed)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    z, slots, width = _pairs(crit, node)
    k, C, place = node.hi - node.lo, len(n_ranks), crit.place[node.lo : node.hi]
    weight = weights[node.lo : node.hi]
    fill = _mean_known(crit, weights, node) if crit.has_unknown else 0.0
    scale = 2.0 ** min(GRID_BITS - node.own[2] - _exponent(weight.max()), MAX_EXPONENT)
    w = np.zeros(width, np.int32)  # a column that has left the node keeps weight 0
    for i in range(k):
        w[place[i]] = np.int32(weight[i])
    turns = np.zeros((C, width), np.int32)  # places in the order of each column
    for c in range(C):
        left[c, : n_ranks[c]] = 0.0
        right[c, : n_ranks[c]] = 0.0
        order = order_of(ranks[c], n_ranks[c])
        for turn in range(k):
            turns[c, place[order[turn]]] = turn
    snapped, is_plain = np.empty(width, np.int32), not crit.has_unknown and (w == 1).all()
    for i in range(k):
        total = snap(z, slots[i], np.float32(scale), np.float32(fill), w, is_plain, snapped)
        own = snapped[place[i]]
        for c in range(C):
            before = sum_earlier(snapped, turns, c, turns[c, place[i]])
            add_earlier(weight[i], before, total, own, c, ranks[c, i], left, right)
    for c in range(C):
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
    left = _settle_in(crit, Node(node.lo, middle, node.own))
    return left, _settle_in(crit, Node(middle, node.hi, node.own))
