"""Factored tables: what two leaves hold tells their distance, and no L x L table is made.

Each keeps the sums of every node, not only of leaves, so that a pair of leaves of which one is
empty falls back to its parents' pair.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit
from dforest.tree.leaves.verbs import WHOLE, Shape, body, drawn_rows, leaf_sums, node_sums, shared


class ClassTable(NamedTuple):
    """z = 1 if the classes differ: h = 1 - sum_k p_k p'_k, from class counts."""

    counts: np.ndarray  # (m, K) float64: drawn rows of each class
    weight: np.ndarray  # (m,) float64: drawn rows
    selves: np.ndarray  # (m,) float64: ordered pairs of a row with its own copies
    node: np.ndarray  # (L,) int64
    parent: np.ndarray  # (m,) int32
    self_pairs: bool


class MomentTable(NamedTuple):
    """z = |y - y'|^2 / 2: h = |mu - mu'|^2 / 2 + (v + v') / 2, from means and variances."""

    mean: np.ndarray  # (m, q) float64
    variance: np.ndarray  # (m,) float64, summed over columns
    weight: np.ndarray
    selves: np.ndarray
    node: np.ndarray
    parent: np.ndarray
    self_pairs: bool


class ValueTable(NamedTuple):
    """z = |y - y'|: the sorted responses of each leaf, O(n) memory; merging two gives h."""

    values: np.ndarray  # (k,) float64, ascending within a leaf
    drawn: np.ndarray  # (k,) float64, how often
    offsets: np.ndarray  # (L + 1,) int64
    weight: np.ndarray
    selves: np.ndarray
    node: np.ndarray
    parent: np.ndarray
    first: np.ndarray  # (m,) int64
    stop: np.ndarray  # (m,) int64
    self_pairs: bool


def class_table(shape: Shape, leaf, weights, y, n_classes, self_pairs) -> ClassTable:
    """Tabulate classes: leaf (k,) int32, weights (k,) float64, y (k,) class codes."""
    counts = np.zeros((len(shape.node), n_classes))
    np.add.at(counts, (leaf, y), weights)
    weight, selves = drawn_rows(shape, leaf, weights)
    counts = node_sums(counts, shape.first, shape.stop)
    return ClassTable(counts, weight, selves, shape.node, shape.parent, self_pairs)


def moment_table(shape: Shape, leaf, weights, y, centre, self_pairs) -> MomentTable:
    """Tabulate responses y (k, q) about ``centre`` (q,), which is any value near them.

    Each leaf's squares are taken about its own mean, so that an outlier elsewhere costs nothing.
    """
    apart, ends = y - centre, shape.node
    weight, selves = drawn_rows(shape, leaf, weights)
    filled = np.maximum(weight[ends], 1.0)
    mean, squares = np.zeros((len(weight), y.shape[1])), np.zeros(len(weight))
    for q, column in enumerate(apart.T):
        mean[ends, q] = _exact_sums(leaf, weights, column, len(ends)) / filled
    square = ((apart - mean[ends][leaf]) ** 2).sum(axis=1)
    squares[ends] = _exact_sums(leaf, weights, square, len(ends))
    _merge_up(shape.parent, weight, mean, squares)
    variance = squares / np.maximum(weight, 1.0)
    return MomentTable(mean + centre, variance, weight, selves, ends, shape.parent, self_pairs)


def _exact_sums(leaf, weights, values, n_leaves) -> np.ndarray:
    """Weighted sums (L,) of leaves, each on a grid of its own: the same bits in any order."""
    largest = np.zeros(n_leaves)
    np.maximum.at(largest, leaf, np.abs(values))
    terms = np.maximum(leaf_sums(leaf, weights, n_leaves), 1.0)
    scales = 2.0 ** (WHOLE - 1 - np.ceil(np.log2(np.where(largest, largest, 1.0) * terms)))
    whole = np.rint(values * scales[leaf]).astype(np.int64) * weights.astype(np.int64)
    return leaf_sums(leaf, whole, n_leaves) / scales


@jit
def _merge_up(parent, weight, mean, squares):
    """Complete means and sums of squares about them (m,) from leaves to the root (Chan et al.)."""
    seen = np.zeros(len(parent))  # drawn rows merged into a node so far
    for node in range(len(parent) - 1, 0, -1):  # preorder: children come after their parent
        top, w = parent[node], weight[node]
        if w == 0.0:
            continue
        both, apart = seen[top] + w, 0.0
        for q in range(mean.shape[1]):
            step = mean[node, q] - mean[top, q]
            apart += step * step
            mean[top, q] += step * (w / both)
        squares[top] += squares[node] + apart * (seen[top] * w / both)
        seen[top] = both


def value_table(shape: Shape, leaf, weights, y, self_pairs) -> ValueTable:
    """Tabulate responses y (k,) as sorted values."""
    order = np.lexsort((weights, y, leaf))
    offsets = np.searchsorted(leaf[order], np.arange(len(shape.node) + 1)).astype(np.int64)
    weight, selves = drawn_rows(shape, leaf, weights)
    rows = y[order].astype(np.float64), weights[order], offsets
    nodes = weight, selves, shape.node, shape.parent, shape.first, shape.stop
    return ValueTable(*rows, *nodes, self_pairs)


@jit
def _occupied(table, one, other):
    """The leaves' nodes, both lifted until there is a pair between them, and its number of pairs.

    Returns (node, node, pairs, whether lifted); pairs is 0 only if the whole tree has none.
    """
    a, b, lifted = table.node[one], table.node[other], False
    while True:
        pairs = table.weight[a] * table.weight[b]
        if not table.self_pairs and (lifted or a == b):
            both = shared(table.parent, a, b)
            pairs -= table.selves[both] if both >= 0 else 0.0
        if pairs > 0.0 or (a == 0 and b == 0):
            return a, b, pairs, lifted
        a, b, lifted = np.int64(table.parent[a]), np.int64(table.parent[b]), True


@jit
def _mean(pairs, total):
    """Mean of z given its sum ``total`` over all pairs of two nodes, self pairs (0) included."""
    return total / pairs if pairs > 0.0 else np.nan


@body(ClassTable)
def _(table, one, other):
    a, b, pairs, lifted = _occupied(table, one, other)
    same = 0.0
    for label in range(table.counts.shape[1]):
        same += table.counts[a, label] * table.counts[b, label]
    total = table.weight[a] * table.weight[b] - same
    return _mean(pairs, total), 0.0 if lifted else pairs


@body(MomentTable)
def _(table, one, other):
    a, b, pairs, lifted = _occupied(table, one, other)
    apart = 0.0
    for q in range(table.mean.shape[1]):
        step = table.mean[a, q] - table.mean[b, q]
        apart += step * step
    total = 0.5 * (apart + (table.variance[a] + table.variance[b]))
    total *= table.weight[a] * table.weight[b]
    return _mean(pairs, total), 0.0 if lifted else pairs


@jit
def _sum_apart(table, one, other):
    """Sum of |y - y'| over the pairs of two leaves, by merging their sorted values."""
    at, end = table.offsets[other], table.offsets[other + 1]
    count_all, sum_all = 0.0, 0.0
    for j in range(at, end):
        count_all += table.drawn[j]
        sum_all += table.drawn[j] * table.values[j]
    count, run, total = 0.0, 0.0, 0.0
    for i in range(table.offsets[one], table.offsets[one + 1]):
        value = table.values[i]
        while at < end and table.values[at] <= value:
            count += table.drawn[at]
            run += table.drawn[at] * table.values[at]
            at += 1
        total += table.drawn[i] * (value * (2.0 * count - count_all) + sum_all - 2.0 * run)
    return total


@body(ValueTable)
def _(table, one, other):
    a, b, pairs, lifted = _occupied(table, min(one, other), max(one, other))
    total = 0.0
    for i in range(table.first[a], table.stop[a]):
        for j in range(table.first[b], table.stop[b]):
            total += _sum_apart(table, i, j)
    return _mean(pairs, total), 0.0 if lifted else pairs
