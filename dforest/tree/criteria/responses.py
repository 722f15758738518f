"""Distances between known responses, in closed form: no pair is ever visited."""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.criteria.verbs import (
    EXACT,
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

WIDE = 4  # responses from which on it pays to leave out the rows of a column's commonest value


class Indicator(NamedTuple):
    """z = 1 if the classes differ, else 0: equation (1) is the Gini criterion. O(k + places K)."""

    y: np.ndarray  # (n,) int32, class codes 0..K-1
    n_classes: int


class HalfSquared(NamedTuple):
    """z = |y - y'|^2 / 2: equation (1) is the variance criterion, summed over columns. O(k q)."""

    y: np.ndarray  # (n, q) float64


class Absolute(NamedTuple):
    """z = |y - y'|: a robust regression tree, not scikit-learn's ``absolute_error``. O(k log k)."""

    y: np.ndarray  # (n,) float64


@body(take, Indicator)
def _(crit, rows):
    return Indicator(crit.y[rows], crit.n_classes)


@body(take, HalfSquared)
def _(crit, rows):
    return HalfSquared(crit.y[rows])


@body(take, Absolute)
def _(crit, rows):
    return Absolute(crit.y[rows])


def _start(crit):
    return 0, 0, 0


def _accuracy(crit):
    return EXACT


def _settled(crit, node):
    y = crit.y[node.lo : node.hi]
    return (y == y[0]).all()


def _part(crit, weights, node, goes_left):
    part_rows(crit.y, node.lo, node.hi, goes_left)
    return node.own, node.own


for _class in (Indicator, HalfSquared, Absolute):
    body(start, _class)(_start)
    body(accuracy, _class)(_accuracy)
    body(part, _class)(_part)
for _class in (Indicator, Absolute):
    body(settled, _class)(_settled)


@body(settled, HalfSquared)
def _(crit, node):
    for i in range(node.lo + 1, node.hi):
        for q in range(crit.y.shape[1]):
            if crit.y[i, q] != crit.y[node.lo, q]:
                return False
    return True


@body(pair_sums, Indicator)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    k, K = node.hi - node.lo, crit.n_classes
    y, w = crit.y[node.lo : node.hi], weights[node.lo : node.hi]
    totals = np.zeros(K)
    for i in range(k):
        totals[y[i]] += w[i]
    n, same = totals.sum(), (totals * totals).sum()
    for c in range(len(n_ranks)):
        table = np.zeros((n_ranks[c], K))
        for i in range(k):
            table[ranks[c, i], y[i]] += w[i]
        behind = np.zeros(K)
        same_left, same_right, n_left = 0.0, same, 0.0
        for r in range(n_ranks[c]):
            for label in range(K):
                more = table[r, label]
                if more > 0.0:
                    same_left += more * (2.0 * behind[label] + more)
                    same_right -= more * (2.0 * (totals[label] - behind[label]) - more)
                    behind[label] += more
                    n_left += more
            left[c, r] = n_left * n_left - same_left
            right[c, r] = (n - n_left) * (n - n_left) - same_right
            count[c, r] = n_left


@jit
def _commonest(ranks, n_ranks):
    """Rank that most rows have."""
    rows = np.zeros(n_ranks, np.int64)
    for rank in ranks:
        rows[rank] += 1
    return rows.argmax()


@body(pair_sums, HalfSquared)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    k, Q = node.hi - node.lo, crit.y.shape[1]
    y, w = crit.y[node.lo : node.hi], weights[node.lo : node.hi]
    n = w.sum()
    mean = np.zeros(Q)
    for i in range(k):
        for q in range(Q):
            mean[q] += w[i] * y[i, q] / n
    what = np.empty((k, Q + 2))  # of a row: draws, squared length, response about the node's mean
    for i in range(k):
        length = 0.0
        for q in range(Q):
            apart = y[i, q] - mean[q]  # so that nothing cancels below
            length += apart * apart
            what[i, 2 + q] = w[i] * apart
        what[i, 0] = w[i]
        what[i, 1] = w[i] * length
    whole = np.zeros(Q + 2)
    for i in range(k):
        for v in range(Q + 2):
            whole[v] += what[i, v]
    for c in range(len(n_ranks)):
        m = n_ranks[c]
        rest = _commonest(ranks[c], m) if Q >= WIDE else m  # found as what the others leave
        table = np.zeros((m + 1, Q + 2))
        table[rest] = whole
        for i in range(k):
            rank = ranks[c, i]
            if rank != rest:
                for v in range(Q + 2):
                    table[rank, v] += what[i, v]
                    table[rest, v] -= what[i, v]
        run = np.zeros(Q + 2)
        for r in range(m):
            of_left, of_right = 0.0, 0.0  # squared lengths of the summed responses
            for v in range(Q + 2):
                run[v] += table[r, v]
                if v >= 2:
                    of_left += run[v] * run[v]
                    of_right += (whole[v] - run[v]) * (whole[v] - run[v])
            left[c, r] = run[0] * run[1] - of_left
            right[c, r] = (n - run[0]) * (whole[1] - run[1]) - of_right
            count[c, r] = run[0]


@body(pair_sums, Absolute)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    k = node.hi - node.lo
    w = weights[node.lo : node.hi]
    n = w.sum()
    y = crit.y[node.lo : node.hi] - (w * crit.y[node.lo : node.hi]).sum() / n
    by_response = np.argsort(y, kind="mergesort")
    height = np.empty(k, np.int64)  # place in the order of the response
    total = np.empty(k)  # distance to all rows of the node
    below, sum_below, sum_all = 0.0, 0.0, (w * y).sum()
    for place in range(k):
        i = by_response[place]
        height[i] = place
        total[i] = y[i] * (2.0 * below - n) + sum_all - 2.0 * sum_below
        below += w[i]
        sum_below += w[i] * y[i]
    for c in range(len(n_ranks)):
        m = n_ranks[c]
        left[c, :m] = 0.0
        right[c, :m] = 0.0
        counts, sums = np.zeros(k + 1), np.zeros(k + 1)  # Fenwick trees over the heights
        seen, sum_seen = 0.0, 0.0
        for i in order_of(ranks[c], m):
            below, sum_below = 0.0, 0.0
            at = height[i]
            while at > 0:
                below += counts[at]
                sum_below += sums[at]
                at &= at - 1
            before = y[i] * (2.0 * below - seen) + sum_seen - 2.0 * sum_below
            add_earlier(w[i], before, total[i], 0.0, c, ranks[c, i], left, right)
            seen += w[i]
            sum_seen += w[i] * y[i]
            at = height[i] + 1
            while at <= k:
                counts[at] += w[i]
                sums[at] += w[i] * y[i]
                at += at & -at
        accumulate(left[c, :m], right[c, :m])
        count_rows(weights, node, ranks[c], count[c, :m])
