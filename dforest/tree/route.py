"""Where a row ends: the leaf of every row of a block."""

import numpy as np

from dforest.jit import jit
from dforest.tree.layout import Tree, leaf_ranges


@jit
def _route(tree, leaf_of, X, leaf):
    for i in range(len(X)):
        x, node = X[i], 0
        while tree.right[node] >= 0:
            column = tree.feature[node]
            if column >= 0:
                value = np.float64(x[column])
            else:
                value = 0.0  # the signed terms, added as when the tree grew
                for v in range(tree.starts[-2 - column], tree.starts[-1 - column]):
                    value += tree.signs[v] * x[tree.columns[v]]
            if np.isnan(value):
                goes_left = tree.missing_left[node]
            else:
                goes_left = value <= tree.threshold[node]
            node = node + 1 if goes_left else tree.right[node]
        leaf[i] = leaf_of[node]


def route(tree: Tree, X: np.ndarray) -> np.ndarray:
    """Leaf number of each row: ``X`` (n, p) float32 or float64, NaN allowed -> (n,) int32."""
    leaf = np.empty(len(X), np.int32)
    _route(tree, leaf_ranges(tree.right)[0], X, leaf)
    return leaf
