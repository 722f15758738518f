"""Small trees for the tests of the engine, and a grown tree as its slow twin sees it."""

import naive
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from dforest.tree import criteria, leaves
from dforest.tree.binning import make_table
from dforest.tree.grow import Limits, grow
from dforest.tree.route import route

seeds = st.integers(0, 2**32 - 1)
some = settings(deadline=None, max_examples=20)  # on a shared machine a deadline fails by chance
LIMITS = {
    "min_leaf": 1.0,
    "min_split": 2.0,
    "max_depth": 99,
    "min_gain": 0.0,
    "max_features": 99,
    "search_rows": 0,
    "block_rows": 1 << 40,
    "oblique": False,
}
KINDS = ["matrix", "signed", "unknown", "graph", "pairs", "indicator", "half_squared", "absolute"]


def limits(**said) -> Limits:
    """No limits but those said, always of one type: each other one is compiled anew."""
    return Limits(**{name: type(none)((LIMITS | said)[name]) for name, none in LIMITS.items()})


def bag(rng, n, most=3):
    """(n,) weights of a bootstrap-like draw: whole, some 0, at least two rows drawn."""
    w = rng.integers(0, most + 1, n)
    w[rng.choice(n, 2, replace=False)] = 1
    return w


def columns(rng, n, p):
    """(n, p) features of which some have many equal values."""
    return np.where(rng.random(p) < 0.5, rng.integers(0, 6, (n, p)) / 7, rng.random((n, p)))


def matrix(rng, n, *, signed=False, unknown=0.0):
    """(n, n) symmetric float32 with a diagonal of its own; a share of unknown pairs is NaN."""
    z = rng.normal(size=(n, n)) if signed else rng.random((n, n))
    z = (z + z.T).astype(np.float32)
    hidden = np.triu(rng.random((n, n)) < unknown)
    z[hidden | hidden.T] = np.nan
    return z


def precomputed(z):
    """Criterion of a matrix (n, n), NaN where unknown."""
    z = np.ascontiguousarray(z, np.float32)
    largest = np.nanmax(np.abs(z), initial=0.0)
    return criteria.precomputed(z, largest, bool(np.isnan(z).any()), np.empty_like(z))


def pairs(z):
    """Criterion of the known pairs of a matrix (n, n)."""
    i, j = np.nonzero(np.triu(~np.isnan(z)))
    return criteria.listed(i, j, z[i, j], len(z))


def graph(weights, far):
    """Criterion of a graph given as a dense matrix of weights, 0 where there is no edge."""
    i, j = np.nonzero(np.triu(weights, 1))
    return criteria.listed(i, j, far - weights[i, j], len(weights), far)


def make(rng, kind, n, grain=0.0):
    """Return a random notion of distance among n rows: its criterion, and z in full.

    With a ``grain`` values are its multiples, so that sums are exact and ties are true ties.
    """

    def grained(values):
        return np.rint(values / grain) * grain if grain else values

    if kind in ("matrix", "signed", "unknown"):
        z = matrix(rng, n, signed=kind == "signed", unknown=0.4 * (kind == "unknown"))
        return precomputed(z), z.astype(float)
    if kind == "pairs":
        z = matrix(rng, n, unknown=0.6).astype(float)
        return pairs(z), z
    if kind == "graph":
        weights = np.triu(grained(rng.random((n, n))) * (rng.random((n, n)) < 0.3), 1)
        weights += weights.T
        return graph(weights, 1.5), naive.graph(weights, 1.5)
    if kind == "indicator":
        y = rng.integers(0, 4, n)
        return criteria.Indicator(y.astype(np.int32), 4), naive.indicator(y)
    if kind == "half_squared":
        y = grained(rng.normal(size=(n, 2)) + 10.0)
        return criteria.HalfSquared(y), naive.half_squared(y)
    y = grained(rng.normal(size=n) + 10.0)
    return criteria.Absolute(y), naive.absolute(y)


def grow_on(X, crit, weights=None, key=0, table=None, **said):
    """Grow one tree on the rows of weight > 0, by exhaustive search unless said otherwise."""
    X = np.asarray(X)
    table = make_table(X, keep_values=said.get("oblique", False)) if table is None else table
    weights = np.ones(len(X)) if weights is None else weights
    rows = np.flatnonzero(weights)
    said = {"max_features": len(table.n_codes)} | said
    return grow(table, crit, rows, weights[rows].astype(float), key, limits(**said))


def table_of(tree, X, z, kind, weights, *, self_pairs=True, max_cells=1 << 20):
    """Leaf table of distances z (n, n), made the way of a ``kind``; and its fallbacks, if told."""
    rows, leaf = np.flatnonzero(weights), route(tree, X)
    largest, shape = float(np.nanmax(np.abs(z), initial=0.0)), leaves.shape_of(tree)
    drawn = weights.astype(float)
    if kind == "matrix":
        scale, cell = (
            leaves.matrix_scale(largest, drawn.sum()),
            leaves.cells_within(tree, max_cells),
        )
        z, has_unknown = z.astype(np.float32), bool(np.isnan(z).any())
        sums = leaves.square_sums(
            cell[leaf[rows]],
            int(cell[-1]) + 1,
            z,
            rows,
            drawn[rows],
            scale,
            self_pairs,
            has_unknown,
        )
        return leaves.matrix_table(shape, cell, sums, scale)
    far = {"pairs": np.nan, "graph": 1.5}[kind]
    known = ~np.isnan(z) if kind == "pairs" else (z != far) & ~np.eye(len(z), dtype=bool)
    i, j = (ends.astype(np.int32) for ends in np.nonzero(np.triu(known)))
    scale = leaves.grid_scale(largest + 1.5, max(drawn.sum(), 1.0) ** 2)
    return leaves.link_table(shape, leaf, drawn, i, j, z[i, j], far, scale, self_pairs), 0


def check_table(table, tree, X, z, weights, *, self_pairs=True, precision=1e-6):
    """Assert equation (2): the means of all leaves, and of how many known pairs they are."""
    twin = naive.leaf_table(as_naive(tree), X, z, weights, self_pairs)
    every = np.arange(len(twin.mean), dtype=np.int32)
    means, pairs = leaves.grid(table, every, every)
    near = precision * np.nanmax(abs(z), initial=0.0)
    np.testing.assert_allclose(means, twin.mean, atol=near, rtol=precision)
    np.testing.assert_array_equal(pairs, twin.counts)
    np.testing.assert_array_equal(
        leaves.paired(table, every, every[::-1])[0], means[every, every[::-1]]
    )


def as_naive(tree):
    """Return the tree as a list of `naive.Node`; only single features are tested in it."""
    top, is_left = np.zeros(len(tree.right), int), np.zeros(len(tree.right), bool)
    for node in np.flatnonzero(tree.right >= 0):
        top[[node + 1, tree.right[node]]] = node
        is_left[node + 1] = True
    return [
        naive.Node(int(top[k]), bool(is_left[k]), int(tree.feature[k]), tree.threshold[k])
        for k in range(len(top))
    ]


def through(tree, X):
    """(m, n) bool: which rows pass through each node, NaN and projections included."""
    found = np.ones((len(tree.right), len(X)), bool)
    for node in np.flatnonzero(tree.right >= 0):
        value = column(tree, node, X)
        left = np.where(np.isnan(value), tree.missing_left[node], value <= tree.threshold[node])
        found[node + 1], found[tree.right[node]] = found[node] & left, found[node] & ~left
    return found


def column(tree, node, X):
    """(n,) what a node tests: a feature, or the signed terms of a projection."""
    X, feature = np.asarray(X, float), tree.feature[node]
    if feature >= 0:
        return X[:, feature]
    value = np.zeros(len(X))
    for e in range(tree.starts[-2 - feature], tree.starts[-1 - feature]):
        value = value + tree.signs[e] * X[:, tree.columns[e]]
    return value


def check_gains(tree, X, z, weights, best, precision=2e-6):
    """Assert at every node: the gain is that of its own cut, and of the best cut there is.

    ``best(weights of the node)`` is the best gain by brute force, 0 where nothing gains.
    """
    reached = through(tree, X)
    for node, here in enumerate(reached):
        w = weights * here
        assert tree.weight[node] == w.sum()
        filled = naive.filled(z, w)
        near = precision * w.sum() * naive.mean_distance(abs(filled), w) + 1e-300
        assert abs(tree.gain[node] - best(w)) <= near
        if tree.right[node] >= 0:
            mine = naive.gain_of(filled, w, reached[node + 1])
            assert abs(tree.gain[node] - mine) <= near


def same_trees(one, other):
    """Assert the same bits."""
    for mine, yours in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, yours)
        assert mine.dtype == yours.dtype
