"""Distances of which only some pairs are listed: graphs, ratings, constraints."""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.criteria.verbs import (
    EXACT,
    FILLED,
    accuracy,
    body,
    count_rows,
    pair_sums,
    part,
    part_rows,
    settled,
    start,
    take,
)


class Listed(NamedTuple):
    """Listed pairs have their own z, all others the same one. O(k + listed pairs) a column.

    With a finite ``far`` the others lie that far apart and each row is at 0 from itself: a graph,
    z = far - w on its edges. With ``far`` NaN the others are unknown and count as the mean of the
    node's listed pairs of different rows.

    A pair is left of a cut if the later of its rows is, and right of it if the earlier one is; so
    two histograms over the node's pairs answer all cuts of a column. A node's own numbers are the
    first and the stop of its pairs.
    """

    first: np.ndarray  # (e,) int32, rows by their number at `take`, first <= second
    second: np.ndarray  # (e,) int32
    z: np.ndarray  # (e,) float64
    number: np.ndarray  # (n,) int32: number at `take` of each row, in node order
    far: float


def listed(first, second, z, n_rows, far=np.nan) -> Listed:
    """The criterion of the pairs (first[e], second[e]) at distance z[e], each listed once."""
    number = np.arange(n_rows, dtype=np.int32)
    ends = np.asarray(first, np.int32), np.asarray(second, np.int32)
    return Listed(*ends, np.asarray(z, np.float64), number, float(far))


@body(take, Listed)
def _(crit, rows):
    inside = np.full(len(crit.number), -1, np.int32)
    for k in range(len(rows)):
        inside[crit.number[rows[k]]] = k
    kept = 0
    for e in range(len(crit.z)):
        kept += inside[crit.first[e]] >= 0 and inside[crit.second[e]] >= 0
    first, second, z = np.empty(kept, np.int32), np.empty(kept, np.int32), np.empty(kept)
    kept = 0
    for e in range(len(crit.z)):
        one, other = inside[crit.first[e]], inside[crit.second[e]]
        if one >= 0 and other >= 0:
            first[kept], second[kept], z[kept] = one, other, crit.z[e]
            kept += 1
    return Listed(first, second, z, np.arange(len(rows)).astype(np.int32), crit.far)


@body(start, Listed)
def _(crit):
    return 0, len(crit.z), 0


@body(accuracy, Listed)
def _(crit):
    return FILLED if np.isnan(crit.far) else EXACT


@body(settled, Listed)
def _(crit, node):
    return node.hi - node.lo < 2 or (node.own[0] == node.own[1] and np.isnan(crit.far))


@jit
def _by_number(crit, node, values, n):
    """Spread what is in node order over the rows' numbers: values (k,) -> (n,)."""
    spread = np.empty(n, values.dtype)
    for i in range(node.hi - node.lo):
        spread[crit.number[node.lo + i]] = values[i]
    return spread


@body(pair_sums, Listed)
def _(crit, weights, node, ranks, n_ranks, left, right, count):
    k, n = node.hi - node.lo, len(crit.number)
    by_number = _by_number(crit, node, weights[node.lo : node.hi], n)
    a, b, _ = node.own
    weight = np.empty(b - a)  # ordered pairs of drawn rows
    total, known = 0.0, 0.0
    for e in range(a, b):
        one, other = crit.first[e], crit.second[e]
        weight[e - a] = (2.0 if one != other else 1.0) * by_number[one] * by_number[other]
        if one != other:
            total += weight[e - a] * crit.z[e]
            known += weight[e - a]
    is_graph = not np.isnan(crit.far)
    far = crit.far if is_graph else (total / known if known > 0.0 else 0.0)
    for c in range(len(n_ranks)):
        m = n_ranks[c]
        count_rows(weights, node, ranks[c], count[c, :m])
        nearer_left, nearer_right = np.zeros(m), np.zeros(m)
        place = _by_number(crit, node, ranks[c], n)
        for e in range(a, b):
            nearer = weight[e - a] * (crit.z[e] - far)
            one, other = place[crit.first[e]], place[crit.second[e]]
            nearer_left[max(one, other)] += nearer
            nearer_right[min(one, other)] += nearer
        if is_graph:  # a row is at 0 from its own copies
            for i in range(k):
                own = weights[node.lo + i] * weights[node.lo + i] * far
                nearer_left[ranks[c, i]] -= own
                nearer_right[ranks[c, i]] -= own
        all_left, all_right = 0.0, nearer_right.sum()
        for r in range(m):
            all_left += nearer_left[r]
            all_right -= nearer_right[r]
            n_left, n_right = count[c, r], count[c, m - 1] - count[c, r]
            left[c, r] = far * n_left * n_left + all_left
            right[c, r] = far * n_right * n_right + all_right


@body(part, Listed)
def _(crit, weights, node, goes_left):
    side = _by_number(crit, node, goes_left, len(crit.number))
    a, b, _ = node.own
    first, second, z = crit.first[a:b].copy(), crit.second[a:b].copy(), crit.z[a:b].copy()
    at = a
    ends = np.empty(2, np.int64)
    for goes in (True, False):  # pairs within the left child, then within the right; others go
        for e in range(len(z)):
            if side[first[e]] == goes and side[second[e]] == goes:
                crit.first[at], crit.second[at], crit.z[at] = first[e], second[e], z[e]
                at += 1
        ends[0 if goes else 1] = at
    part_rows(crit.number, node.lo, node.hi, goes_left)
    return (a, ends[0], 0), (ends[0], ends[1], 0)
