"""When growing stops, and a search on some of the rows."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dforest.tree.layout import best_first, leaf_nodes, n_leaves, parents, pruned
from tree import cases


def depths(tree):
    """(m,) depth of each node."""
    depth = np.zeros(len(tree.right), int)
    for node, top in enumerate(parents(tree.right)):
        depth[node] = depth[top] + 1 if node else 0
    return depth


@pytest.fixture(params=["matrix", "half_squared"])
def problem(request):
    """Sixty rows: X, criterion, z, weights."""
    rng = np.random.default_rng(7)
    crit, z = cases.make(rng, request.param, 60)
    return rng.random((60, 3)), crit, z, cases.bag(rng, 60)


@pytest.mark.parametrize("max_depth", [0, 1, 3])
def test_max_depth__bounds_every_path(problem, max_depth):
    X, crit, _, w = problem
    free, tree = (cases.grow_on(X, crit, w, max_depth=d) for d in (99, max_depth))
    assert depths(tree).max() == max_depth
    cases.same_trees(tree, pruned(free, (depths(free) < max_depth) & (free.right >= 0)))


@pytest.mark.parametrize("min_split", [2, 5, 20, 1000])
def test_min_split__leaves_smaller_nodes_whole(problem, min_split):
    X, crit, _, w = problem
    free, tree = (cases.grow_on(X, crit, w, min_split=m) for m in (2, min_split))
    cases.same_trees(tree, pruned(free, (free.weight >= min_split) & (free.right >= 0)))


@pytest.mark.parametrize("min_leaf", [1, 2, 7, 30, 1000])
def test_min_leaf__counts_drawn_rows(problem, min_leaf):
    X, crit, _, w = problem
    tree = cases.grow_on(X, crit, w, min_leaf=min_leaf)
    assert (tree.weight[leaf_nodes(tree)] >= min(min_leaf, w.sum())).all()
    assert (n_leaves(tree) == 1) == (2 * min_leaf > w.sum())


@pytest.mark.parametrize("min_gain", [0.0, 0.3, 1.0, 1e9])
def test_min_gain__is_equation_1(problem, min_gain):
    X, crit, _, w = problem
    free, tree = (cases.grow_on(X, crit, w, min_gain=g) for g in (0.0, min_gain))
    cases.same_trees(tree, pruned(free, free.gain >= max(min_gain, 1e-300)))


def best_first_leaves(X, z, w, max_leaves):
    """Rows of each leaf when the node of the largest gain is split first, by the definition."""

    def found(w):
        return naive.best_cut(X, z, w) or (0.0, -1, np.nan)

    ends = [(found(w), w)]
    while len(ends) < max_leaves and max(cut[0] for cut, _ in ends) > 0:
        at = max(range(len(ends)), key=lambda k: ends[k][0][0])
        (_, feature, threshold), w = ends.pop(at)
        left = X[:, feature] <= threshold
        ends += [(found(side), side) for side in (w * left, w * ~left)]
    return {frozenset(np.flatnonzero(w)) for _, w in ends}


@pytest.mark.parametrize("max_leaves", [1, 2, 3, 6, 11, 100])
def test_best_first__is_growing_the_node_of_the_largest_gain_first(max_leaves):
    rng = np.random.default_rng(3)
    X, w, z = rng.random((30, 2)), cases.bag(rng, 30), cases.matrix(rng, 30)
    whole = cases.grow_on(X, cases.precomputed(z), w)
    tree = pruned(whole, best_first(whole, max_leaves))
    ends = cases.through(tree, X)[leaf_nodes(tree)]
    mine = {frozenset(np.flatnonzero(end & (w > 0))) for end in ends}
    assert mine == best_first_leaves(X, z.astype(float), w, max_leaves)
    assert n_leaves(tree) <= max_leaves


# A search on some of the rows ------------------------------------------------------------------


@cases.some
@given(cases.seeds, st.integers(2, 40), st.integers(1, 12))
def test_search_rows__keeps_the_limits_of_leaves(seed, search_rows, min_leaf):
    rng = np.random.default_rng(seed)
    X, w = cases.columns(rng, 80, 3), cases.bag(rng, 80)
    X[rng.random(X.shape) < 0.1] = np.nan
    crit, z = cases.make(rng, "matrix", 80)
    said = {"min_leaf": min_leaf, "search_rows": search_rows, "block_rows": search_rows}
    tree = cases.grow_on(X, crit, w, seed, **said)
    np.testing.assert_array_equal(tree.weight, cases.through(tree, X) @ w)
    assert (tree.weight[leaf_nodes(tree)] >= min_leaf).all()
    cases.same_trees(tree, cases.grow_on(X, crit, w, seed, **said))


def test_search_rows__of_at_least_all_rows_is_exhaustive():
    rng = np.random.default_rng(0)
    X, crit = rng.random((50, 2)), cases.precomputed(cases.matrix(rng, 50))
    whole = cases.grow_on(X, crit)
    for search_rows in (50, 1000):
        said = {"search_rows": search_rows, "block_rows": search_rows}
        cases.same_trees(whole, cases.grow_on(X, crit, **said))


def test_search_rows__finds_what_is_plain_to_see():
    rng = np.random.default_rng(1)
    X = rng.random((400, 2))
    z = naive.indicator(X[:, 1] > 0.6)
    tree = cases.grow_on(X, cases.precomputed(z), search_rows=100, block_rows=100, min_leaf=5)
    assert tree.feature[0] == 1
    assert abs((X[:, 1] <= tree.threshold[0]).mean() - (X[:, 1] <= 0.6).mean()) < 0.05
    assert tree.gain[0] == pytest.approx(naive.mean_distance(z, np.ones(400)) * 400, rel=0.15)


def test_search_rows__draws_other_features_where_none_tells_more_than_chance():
    rng = np.random.default_rng(0)
    X = rng.random((400, 12))
    z = np.abs(X[:, :1] - X[:, 0])
    said = {"max_features": 3, "min_leaf": 5}
    crit, draws = cases.precomputed(z), range(20)
    whole = [cases.grow_on(X, crit, key=key, **said).feature[0] for key in draws]
    drawn = [cases.grow_on(X, crit, key=key, search_rows=100, block_rows=100, **said).feature[0]
             for key in draws]  # fmt: skip
    assert np.mean(np.array(whole) == 0) < 0.5  # three features in twelve are drawn
    assert np.mean(np.array(drawn) == 0) > 0.7  # three, up to eight times
    noise = np.abs(rng.random((400, 1)) - rng.random(400))
    noise = np.triu(noise, 1) + np.triu(noise, 1).T  # tells nothing: it ends, and respects limits
    tree = cases.grow_on(X, cases.precomputed(noise), search_rows=100, block_rows=100, **said)
    assert tree.weight[tree.right < 0].min() >= 5
