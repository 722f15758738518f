"""The compiled twin that dense growth is measured against: equation (1) by gathering pairs.

For each candidate feature the node's rows are sorted and z is gathered in that order, each pair
once, at its later row. Compiled by the same decorator as dforest, plain but not handicapped:
float32 sums in eight accumulators (gathering from a row in the first cache takes .2 ns an element),
unsigned indices (no test for negative ones). Rows out of order are what costs: .9 to 1.5 ns.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit


class Grown(NamedTuple):
    """A tree as flat arrays; the rows of leaf l are rows[starts[l]:starts[l + 1]]."""

    feature: np.ndarray  # (m,) -1 at a leaf
    threshold: np.ndarray  # (m,)
    left: np.ndarray  # (m,) number of the left child
    right: np.ndarray  # (m,)
    gain: np.ndarray  # (m,)
    rows: np.ndarray  # (n,)
    starts: np.ndarray  # (L + 1,)


@jit
def gather_sum(row, places):
    """Sum of row[places]."""
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = np.float32(0.0)
    whole = len(places) & ~7
    for k in range(0, whole, 8):
        s0 += row[places[k]]
        s1 += row[places[k + 1]]
        s2 += row[places[k + 2]]
        s3 += row[places[k + 3]]
        s4 += row[places[k + 4]]
        s5 += row[places[k + 5]]
        s6 += row[places[k + 6]]
        s7 += row[places[k + 7]]
    for k in range(whole, len(places)):
        s0 += row[places[k]]
    return np.float64(((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7)))


@jit
def best_cut(z, x, order, row_sums, is_first, min_rows):
    """Best (gain, threshold, n_left) of one column; ``order`` holds the node's rows sorted by x.

    ``row_sums`` of the node are the same for every feature: the first one writes them, by
    gathering the other half of its pairs too.
    """
    n = len(order)
    before = np.empty(n)
    for k in range(n):
        row = z[order[k]]
        before[k] = gather_sum(row, order[:k])
        if is_first:
            row_sums[order[k]] = before[k] + gather_sum(row, order[k:])
    total = row_sums[order].sum()
    best, threshold, n_left = 0.0, np.nan, 0
    left, right = 0.0, total
    for k in range(n - min_rows):
        own = z[order[k], order[k]]
        left += 2.0 * before[k] + own
        right -= 2.0 * (row_sums[order[k]] - before[k]) - own
        here, after = x[order[k]], x[order[k + 1]]
        if k + 1 >= min_rows and here < after:
            gain = total / n - left / (k + 1) - right / (n - k - 1)
            if gain > best:
                best, threshold, n_left = gain, here + 0.5 * (after - here), k + 1
    return best, threshold, n_left


@jit
def grow(columns, z, rows, seed, max_features, min_rows):
    """Grow one tree depth first on distinct ``rows`` (uint32, reordered in place).

    ``columns`` (p, n) float64; ``z`` (n, n) float32. Features are drawn in each node without
    replacement, those that are constant there do not count. Returns the fields of `Grown`.
    """
    np.random.seed(seed)  # noqa: NPY002, numba's own generator
    n, p = len(rows), len(columns)
    most = 2 * n // max(min_rows, 1) + 1
    feature, left, right = np.full((3, most), -1, np.int32)
    threshold, gain = np.full((2, most), np.nan)
    stack = np.zeros((most, 3), np.int64)  # node, its rows from, to
    stack[0, 2] = n
    starts = np.full(most + 1, n, np.int64)  # filled from the end: right sides are grown first
    n_nodes, n_stacked, n_leaves = 1, 1, 0
    row_sums, drawn = np.empty(columns.shape[1]), np.arange(p)
    while n_stacked:
        n_stacked -= 1
        node, lo, hi = stack[n_stacked]
        here = rows[lo:hi]
        best, where, cut, n_left, best_order = 0.0, -1, np.nan, 0, here
        tried, turn = 0, 0
        while tried < max_features and turn < p and hi - lo >= 2 * min_rows:
            pick = np.random.randint(turn, p)  # noqa: NPY002
            drawn[turn], drawn[pick] = drawn[pick], drawn[turn]
            x = columns[drawn[turn]]
            turn += 1
            order = here[np.argsort(x[here])]
            if x[order[0]] == x[order[-1]]:
                continue
            found, t, k = best_cut(z, x, order, row_sums, tried == 0, min_rows)
            tried += 1
            if found > best:
                best, where, cut, n_left, best_order = found, drawn[turn - 1], t, k, order
        if where < 0:
            n_leaves += 1
            starts[most - n_leaves] = lo
            continue
        here[:] = best_order
        feature[node], threshold[node], gain[node] = where, cut, best
        left[node], right[node] = n_nodes, n_nodes + 1
        for side in range(2):
            stack[n_stacked, 0] = n_nodes + side
            stack[n_stacked, 1] = lo + side * n_left
            stack[n_stacked, 2] = hi if side else lo + n_left
            n_stacked += 1
        n_nodes += 2
    m, starts = n_nodes, starts[most - n_leaves :]
    return feature[:m], threshold[:m], left[:m], right[:m], gain[:m], rows, starts


@jit
def leaf_table(z, rows, starts):
    """Equation (2) on the tree's own rows: (L, L) float64.

    Streams the rows of z and scatters them by leaf: 1.5 to 2 times faster than gathering, even
    though gathering may leave out half of the leaf pairs.
    """
    n_leaves = len(starts) - 1
    leaf_of = np.full(len(z), n_leaves, np.uint32)  # one more column, for rows out of bag
    for a in range(n_leaves):
        for i in rows[starts[a] : starts[a + 1]]:
            leaf_of[i] = a
    sums = np.zeros((n_leaves, n_leaves + 1))
    for a in range(n_leaves):
        mine = sums[a]
        for i in rows[starts[a] : starts[a + 1]]:
            row = z[i]
            for j in range(len(row)):
                mine[leaf_of[j]] += row[j]
    table = np.empty((n_leaves, n_leaves))
    for a in range(n_leaves):
        for b in range(n_leaves):
            pairs = (starts[a + 1] - starts[a]) * (starts[b + 1] - starts[b])
            table[a, b] = sums[a, b] / pairs
    return table


@jit
def read(z):
    """Sum of all of z: what any algorithm pays that looks at each distance once."""
    total = 0.0
    for i in range(len(z)):
        lanes, row = np.zeros(64, np.float32), z[i]
        whole = len(row) & ~63
        for start in range(0, whole, 64):
            part = row[start : start + 64]
            for v in range(64):
                lanes[v] += part[v]
        for v in range(64):
            total += lanes[v]
        for j in range(whole, len(row)):
            total += row[j]
    return total
