"""Answers for pairs of rows: nanoseconds of one core for a pair and a tree.

100 trees with leaves of at least 5 rows. "ratio gathered" is against a compiled loop that looks up
each pair in the tree's means, spread out as a full matrix before the clock starts: what must be
read if nothing is shared between the rows of a leaf.
"""

import numpy as np

import dforest as df
from benchmarks.harness import Row, in_turn, ratio
from dforest.jit import jit
from dforest.methods.answers import pairwise
from dforest.methods.asked import Asked
from dforest.methods.nearest import nearest
from dforest.run.here import Here
from dforest.tree.leaves import grid

SIZES = {"toy": (300,), "full": (4_000,)}
REPEATS = {"toy": 1, "full": 3}
NOTIONS = ("precomputed", "indicator", "half_squared", "absolute")


@jit
def add_gathered(total, means, ones, others):
    """Add one tree, pair by pair."""
    for i in range(len(ones)):
        row = means[ones[i]]
        for j in range(len(others)):
            total[i, j] += row[others[j]]


def gathered(tables, leaves):
    """Sums over trees of all pairs of rows."""
    total = np.zeros((len(leaves), len(leaves)))
    for means, leaf in zip(tables, np.ascontiguousarray(leaves.T), strict=True):
        add_gathered(total, means, leaf, leaf)
    return total


def measure(notion: str, n: int, scale: str) -> Row:
    """All pairs of n rows: of two sets, of one, and the nearest 10."""
    X = np.random.default_rng(0).random((n, 8))
    y = X[:, 0] + 0.5 * X[:, 1]
    Z = {"precomputed": abs(y[:, None] - y), "indicator": (5 * y).astype(int)}.get(notion, y)
    model = df.DistanceForest(notion, random_state=0).fit(X, Z)._forest
    leaves, here = model.leaves, Here(1)
    two, one = Asked(model, leaves, leaves), Asked(model, leaves)
    every = [np.arange(len(tree.right) // 2 + 1) for tree in model.trees]
    tables = [grid(t, own, own)[0].astype(np.float32) for t, own in zip(model.tables, every)]
    work = (
        lambda: pairwise(two, here),
        lambda: pairwise(one, here),
        lambda: nearest(two, 10, here),
        lambda: gathered(tables, leaves),
    )
    seconds = in_turn(*work, repeats=REPEATS[scale])
    ns = np.median(seconds, axis=0) * 1e9 / (n * n * len(model.trees))
    names = ("two sets", "one set", "nearest", "gathered")
    return {
        "ratio gathered": ratio(seconds[:, 0], seconds[:, 3]),
        "z": notion,
        "n": n,
        "leaves": int(np.mean([len(own) for own in every])),
        **{f"ns {name}": float(each) for name, each in zip(names, ns, strict=True)},
    }


def run(scale: str) -> list[Row]:
    return [measure(notion, n, scale) for notion in NOTIONS for n in SIZES[scale]]
