"""Small data for forests of every notion, and the slow twin of a fitted forest."""

import dataclasses

import naive
import numpy as np
from distributed import get_worker
from scipy import sparse

from dforest import DistanceForest, Graph, Pairs
from dforest.methods.forest import voters
from dforest.tree.layout import parents

NOTIONS = ("precomputed", "pairs", "graph", "indicator", "half_squared", "absolute")


def points(n=40, p=3, seed=0):
    """Features with ties, float64 (n, p)."""
    return np.round(np.random.default_rng(seed).normal(size=(n, p)), 1)


def plane(n=40, seed=0):
    """Points of the unit square and their distances: (n, 2), (n, n)."""
    X = np.random.default_rng(seed).random((n, 2))
    return X, np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))


def example(notion, X, seed=0):
    """What `fit` takes as Z for a notion, and all its distances (n, n), NaN where unknown."""
    rng, n = np.random.default_rng([seed, 1]), len(X)
    if notion == "precomputed":
        z = rng.normal(size=(n, n)) + abs(X[:, :1] - X[:, :1].T)
        z = np.float32(z + z.T).astype(float)
        return z, z
    if notion == "pairs":
        i, j = np.triu_indices(n)
        taken = rng.random(len(i)) < 0.6
        i, j = i[taken], j[taken]
        z = abs(X[i, 0] - X[j, 0]) + rng.random(len(i))
        return Pairs(i, j, z), naive.pairs(i, j, z, n)
    if notion == "graph":
        w = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.2), 1)
        return Graph(sparse.csr_array(w + w.T), far=2.0), naive.graph(w + w.T, far=2.0)
    if notion == "indicator":
        y = np.array(["ant", "bee", "cat"])[
            np.digitize(X[:, 0] + rng.normal(0, 0.3, n), [-0.5, 0.5])
        ]
        return y, naive.indicator(y)
    if notion == "half_squared":
        y = X[:, :2] + rng.normal(0, 0.3, (n, 2))
        return y, naive.half_squared(y)
    y = X[:, 0] + rng.normal(0, 0.3, n)
    return y, naive.absolute(y)


def forest_of(notion="precomputed", **changes):
    """Unfitted forest of a few small trees."""
    options = {"n_estimators": 5, "min_samples_leaf": 3, "random_state": 0, "n_jobs": 1}
    return DistanceForest(notion, **(options | changes))


def as_naive(tree):
    """A tree of ours as a list of `naive.Node`."""
    parent = parents(tree.right)
    return [
        naive.Node(int(parent[k]), k == parent[k] + 1, int(f), float(t), float(g))
        for k, (f, t, g) in enumerate(zip(tree.feature, tree.threshold, tree.gain))
    ]


def slow_twin(forest, X, z, leaf_rows=None):
    """Trees and leaf tables of a fitted forest, tabulated slowly from all its rows."""
    model, trees, tables = forest._forest, [], []
    for t, tree in enumerate(model.trees):
        rows, weights = voters(model.recipe, t, model.pool, len(X), leaf_rows or forest.leaf_rows)
        w = np.zeros(len(X))
        w[rows] = weights
        trees.append(as_naive(tree))
        tables.append(naive.leaf_table(trees[-1], X, z, w, model.recipe.self_pairs))
    return trees, tables


def bags(forest):
    """How often each tree drew each row, (T, n)."""
    model = forest._forest
    w = np.zeros((len(model.trees), model.n_rows))
    for t in range(len(model.trees)):
        rows, weights = model.bag(t)
        w[t, rows] = weights
    return w


def bits(forest):
    """Everything that a forest learned, as bytes."""
    arrays, facts = forest.to_arrays()
    known = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
    return known, facts


def fit_in_worker(notion):
    """Task of a Dask worker: fit, and say which threads did it."""
    assert get_worker() is not None
    X = points()
    forest = forest_of(notion, n_jobs=2).fit(X, example(notion, X)[0])
    return bits(forest), repr(forest._here())


def parameters_of(forest):
    """Recipe of a fitted forest."""
    return dataclasses.asdict(forest._forest.recipe)
