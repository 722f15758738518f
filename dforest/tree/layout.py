"""A tree as flat arrays, its nodes in preorder, and what follows from that order.

Preorder buys three things: a left child is the next node, so it needs no pointer; leaves are
numbered from left to right; and the leaves below any node are one range.
"""

import heapq
from typing import NamedTuple

import numpy as np

from dforest.jit import jit


class Tree(NamedTuple):
    """One tree: m nodes in preorder (node 0 the root), L leaves numbered from left to right."""

    feature: np.ndarray  # (m,) int32: column tested; -1 at a leaf; -2 - k for projection k
    threshold: np.ndarray  # (m,) float64: go left when the value is <= threshold
    right: np.ndarray  # (m,) int32: right child (the left one is the next node); -1 at a leaf
    missing_left: np.ndarray  # (m,) bool: side of a row whose value is NaN
    gain: np.ndarray  # (m,) float64: equation (1) of the split; 0 at a leaf
    weight: np.ndarray  # (m,) float64: how many drawn rows reached the node
    starts: np.ndarray  # (k + 1,) int64: where each projection begins in the next two
    columns: np.ndarray  # (s,) int32: features that a projection adds ...
    signs: np.ndarray  # (s,) float64: ... each with +1 or -1


DTYPES = Tree(
    np.int32, np.float64, np.int32, np.bool_, np.float64, np.float64, np.int64, np.int32, np.float64
)


def n_leaves(tree: Tree) -> int:
    """Number of leaves; a binary tree of m nodes has (m + 1) / 2."""
    return (len(tree.feature) + 1) // 2


@jit
def leaf_ranges(right):
    """Leaves below each node: first and stop, both (m,) int64, from ``right`` (m,) in preorder.

    A leaf's own number is its ``first``.
    """
    m = len(right)
    first, stop = np.empty(m, np.int64), np.empty(m, np.int64)
    seen = 0
    for node in range(m):
        first[node] = seen
        if right[node] < 0:
            seen += 1
    for node in range(m - 1, -1, -1):
        stop[node] = first[node] + 1 if right[node] < 0 else stop[right[node]]
    return first, stop


@jit
def parents(right):
    """Parent of each node, (m,) int32; the root is its own, so climbing ends there."""
    parent = np.zeros(len(right), np.int32)
    for node in range(len(right)):
        if right[node] >= 0:
            parent[node + 1] = node
            parent[right[node]] = node
    return parent


def leaf_nodes(tree: Tree) -> np.ndarray:
    """Node of each leaf, (L,) int64, in the order of leaf numbers."""
    return np.flatnonzero(tree.right < 0)


def best_first(tree: Tree, max_leaves: int) -> np.ndarray:
    """Which splits growing by the largest gain first would make with ``max_leaves`` leaves.

    As a node's split does not depend on when it is found, growing best first and stopping equals
    growing whole and keeping the splits that would have come first.

    Returns
    -------
    (m,) bool
        True at inner nodes that stay split.
    """
    kept = np.zeros(len(tree.feature), bool)
    waiting = [(-tree.gain[0], 0)] if tree.right[0] >= 0 else []
    for _ in range(max_leaves - 1):
        if not waiting:
            break
        _, node = heapq.heappop(waiting)
        kept[node] = True
        for child in (node + 1, int(tree.right[node])):
            if tree.right[child] >= 0:
                heapq.heappush(waiting, (-tree.gain[child], child))
    return kept


def pruned(tree: Tree, kept: np.ndarray) -> Tree:
    """The tree with only the splits ``kept`` (m,) bool; every other node there is a leaf."""
    stays = np.zeros(len(kept), bool)
    stays[0] = True
    for node in np.flatnonzero(kept):  # preorder: a parent comes before its children
        if stays[node]:
            stays[[node + 1, tree.right[node]]] = True
    inner = stays & kept
    number = np.cumsum(stays) - 1
    feature = np.where(inner, tree.feature, -1)
    used = np.flatnonzero(feature[stays] < -1)
    projections = -2 - feature[stays][used]
    sizes = np.diff(tree.starts)[projections]
    places = [np.arange(tree.starts[k], tree.starts[k + 1]) for k in projections]
    taken = np.concatenate([np.empty(0, np.int64), *places])
    feature = feature[stays]
    feature[used] = -2 - np.arange(len(used))
    return Tree(
        feature.astype(np.int32),
        np.where(inner, tree.threshold, np.nan)[stays],
        np.where(inner, number[tree.right], -1)[stays].astype(np.int32),
        (inner & tree.missing_left)[stays],
        np.where(inner, tree.gain, 0.0)[stays],
        tree.weight[stays],
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        tree.columns[taken],
        tree.signs[taken],
    )


def joined(trees: list[Tree]) -> dict[str, np.ndarray]:
    """Flat arrays of many trees, with ``node_offsets`` and ``projection_offsets`` (T + 1,)."""
    arrays = {
        name: np.concatenate([getattr(tree, name) for tree in trees]).astype(dtype)
        for name, dtype in zip(Tree._fields, DTYPES, strict=True)
    }
    sizes = ([len(tree.feature) for tree in trees], [len(tree.starts) for tree in trees])
    arrays["node_offsets"], arrays["projection_offsets"] = (
        np.concatenate([[0], np.cumsum(each)]).astype(np.int64) for each in sizes
    )
    return arrays


def parted(arrays: dict[str, np.ndarray]) -> list[Tree]:
    """The trees that `joined` put together, as views."""
    node, projection = arrays["node_offsets"], arrays["projection_offsets"]
    trees, entry = [], 0
    for t in range(len(node) - 1):
        nodes = slice(node[t], node[t + 1])
        starts = arrays["starts"][projection[t] : projection[t + 1]]
        entries = slice(entry, entry + int(starts[-1]))
        entry = entries.stop
        flat = (arrays[name][nodes] for name in Tree._fields[:6])
        trees.append(Tree(*flat, starts, arrays["columns"][entries], arrays["signs"][entries]))
    return trees
