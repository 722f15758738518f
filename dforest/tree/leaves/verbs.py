"""What is asked of a leaf table: the mean distance between two leaves, and of how many pairs.

A table is a NamedTuple of arrays, made from sums that add up across blocks of rows or pairs. The
sums are whole numbers on a grid (`grid_scale`), so that they are exact and come out with the same
bits however the rows were cut into blocks.
"""

from typing import NamedTuple

import numpy as np

from dforest.jit import jit, overload
from dforest.tree.layout import Tree, leaf_nodes, leaf_ranges, parents

WHOLE = 62  # sums stay below 2**62


class Shape(NamedTuple):
    """What tables know of their tree: which leaves a node has below it, and its parent."""

    node: np.ndarray  # (L,) int64: node of each leaf
    first: np.ndarray  # (m,) int64: leaves below a node are first:stop
    stop: np.ndarray  # (m,) int64
    parent: np.ndarray  # (m,) int32


def shape_of(tree: Tree) -> Shape:
    """The shape of a tree."""
    return Shape(leaf_nodes(tree), *leaf_ranges(tree.right), parents(tree.right))


def grid_scale(largest: float, n_terms: float) -> float:
    """Power of two by which numbers up to ``largest`` are scaled, so ``n_terms`` of them add up.

    >>> float(grid_scale(1.0, 2.0**20)) == 2.0**41
    True
    """
    if largest == 0.0:
        return 1.0
    return 2.0 ** np.floor(WHOLE - 1 - np.ceil(np.log2(largest)) - np.ceil(np.log2(n_terms)))


_bodies = {}


def between_leaves(table, one, other):
    """``(mean distance, known pairs)`` of two leaves; 0 pairs when the mean is an ancestor's."""
    return _bodies[type(table)](table, one, other)


overload(between_leaves)(lambda table, one, other: _bodies[table.instance_class])


def body(cls):
    """Register the decorated function as what `between_leaves` does for tables of class ``cls``."""
    return lambda function: _bodies.setdefault(cls, function)


@jit
def grid(table, ones, others):
    """Means and pairs of every leaf of ``ones`` (a,) with every leaf of ``others`` (b,): (a, b)."""
    means, pairs = np.empty((len(ones), len(others))), np.empty((len(ones), len(others)))
    for i in range(len(ones)):
        for j in range(len(others)):
            means[i, j], pairs[i, j] = between_leaves(table, ones[i], others[j])
    return means, pairs


@jit
def paired(table, ones, others):
    """Means and pairs of leaf ``ones[i]`` with leaf ``others[i]``: (a,), (a,)."""
    means, pairs = np.empty(len(ones)), np.empty(len(ones))
    for i in range(len(ones)):
        means[i], pairs[i] = between_leaves(table, ones[i], others[i])
    return means, pairs


@jit
def shared(parent, a, b):
    """The node whose rows two nodes have in common: the lower, if one is below the other; else -1.

    Two leaves lifted to ancestors may end that way when one lies deeper than the other.
    """
    upper, lower = min(a, b), max(a, b)
    node = lower
    while node > upper:  # preorder: a parent's number is smaller
        node = np.int64(parent[node])
    return lower if node == upper else np.int64(-1)


@jit
def leaf_sums(leaf, values, n_leaves):
    """Sum ``values`` (k,) over the rows of each leaf: (L,) of the values' kind."""
    sums = np.zeros(n_leaves, values.dtype)
    for i in range(len(leaf)):
        sums[leaf[i]] += values[i]
    return sums


@jit
def node_sums(sums, first, stop):
    """Sums (L, ...) of leaves become sums (m, ...) of nodes."""
    run = np.zeros((len(sums) + 1, sums.shape[1]), sums.dtype)
    for leaf in range(len(sums)):
        run[leaf + 1] = run[leaf] + sums[leaf]
    out = np.empty((len(first), sums.shape[1]), sums.dtype)
    for node in range(len(first)):
        out[node] = run[stop[node]] - run[first[node]]
    return out


def drawn_rows(shape: Shape, leaf, weights) -> tuple[np.ndarray, np.ndarray]:
    """Drawn rows of each node, and its ordered pairs of a row with its own copies: (m,), (m,)."""
    n = len(shape.node)
    sums = np.stack([leaf_sums(leaf, weights, n), leaf_sums(leaf, weights * weights, n)], axis=1)
    weight, selves = node_sums(sums, shape.first, shape.stop).T.copy()
    return weight, selves
