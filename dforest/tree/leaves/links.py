"""Tables of listed pairs: sums over the listed pairs of two leaves, kept only where there are any.

Memory is that of the pairs, O(e) a tree, never L x L.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.leaves.verbs import Shape, body, drawn_rows, shared


class LinkTable(NamedTuple):
    """Listed pairs by leaf and leaf, both ways; running sums, so that a range is a difference.

    With ``far`` finite other pairs lie that far apart (a graph) and a row is at 0 from itself; with
    ``far`` NaN they are unknown, and leaves without a listed pair take their parents' mean.
    """

    indptr: np.ndarray  # (L + 1,) int64
    other: np.ndarray  # (e,) int32: the other leaf, ascending within a leaf
    total: np.ndarray  # (e + 1,) int64: running sum of z, or of z - far, on the grid
    known: np.ndarray  # (e + 1,) int64: running number of listed pairs of drawn rows
    weight: np.ndarray  # (m,) float64: drawn rows of a node
    selves: np.ndarray  # (m,) float64: ordered pairs of a row with its own copies
    node: np.ndarray  # (L,) int64
    first: np.ndarray  # (m,) int64
    stop: np.ndarray  # (m,) int64
    parent: np.ndarray  # (m,) int32
    scale: float
    far: float
    self_pairs: bool


def link_table(shape: Shape, leaf, weights, first, second, z, far, scale, self_pairs) -> LinkTable:
    """Tabulate the listed pairs (first[e] <= second[e], z[e]), each listed once.

    leaf (n,) int32 and weights (n,) float64 of all rows, weight 0 where a row has no vote.
    """
    n = len(shape.node)
    drawn = (weights[first] * weights[second]).astype(np.int64)
    kept = (drawn > 0) & (self_pairs | (first != second))
    first, second, drawn = first[kept], second[kept], drawn[kept]
    apart = z[kept] if np.isnan(far) else z[kept] - far
    ends = leaf[first].astype(np.int64), leaf[second].astype(np.int64)
    value, both = drawn * np.rint(apart * scale).astype(np.int64), first != second
    keys = np.concatenate([ends[0] * n + ends[1], (ends[1] * n + ends[0])[both]])
    keys, place = np.unique(keys, return_inverse=True)
    total, known = np.zeros((2, len(keys)), np.int64)
    np.add.at(total, place, np.concatenate([value, value[both]]))
    np.add.at(known, place, np.concatenate([drawn, drawn[both]]))
    indptr = np.searchsorted(keys, np.arange(n + 1) * n).astype(np.int64)
    weight, selves = drawn_rows(shape, leaf, weights)
    return LinkTable(
        indptr,
        (keys % n).astype(np.int32),
        np.append(0, np.cumsum(total)),
        np.append(0, np.cumsum(known)),
        weight,
        selves,
        *shape,
        float(scale),
        float(far),
        bool(self_pairs),
    )


@jit
def _listed_between(table, a, b):
    """Sum of z (or z - far) on the grid, and number, of the listed pairs of two nodes."""
    total, known = np.int64(0), np.int64(0)
    for leaf in range(table.first[a], table.stop[a]):
        begin, end = table.indptr[leaf], table.indptr[leaf + 1]
        others = table.other[begin:end]
        lo = begin + np.searchsorted(others, table.first[b])
        hi = begin + np.searchsorted(others, table.stop[b])
        total += table.total[hi] - table.total[lo]
        known += table.known[hi] - table.known[lo]
    return total, known


@body(LinkTable)
def _(table, one, other):
    a, b, lifted = table.node[one], table.node[other], False
    is_graph = not np.isnan(table.far)
    while True:
        total, known = _listed_between(table, a, b)
        pairs, apart = np.float64(known), total / table.scale
        if is_graph:
            pairs = table.weight[a] * table.weight[b]
            both = shared(table.parent, a, b) if lifted or a == b else np.int64(-1)
            selves = table.selves[both] if both >= 0 else 0.0  # at 0, or left out
            pairs -= 0.0 if table.self_pairs else selves
            apart += table.far * (pairs - selves if table.self_pairs else pairs)
        if pairs > 0.0:
            return apart / pairs, 0.0 if lifted else pairs
        if a == 0 and b == 0:
            return np.nan, 0.0
        a, b, lifted = np.int64(table.parent[a]), np.int64(table.parent[b]), True
