"""Trees against equation (1) worked out pair by pair, and against scikit-learn's CART."""

import naive
import numpy as np
import pytest
from hypothesis import given
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dforest.arrays import as_distances
from dforest.tree.criteria import HalfSquared, Indicator, listed
from dforest.tree.grow import grow
from dforest.tree.layout import leaf_nodes, n_leaves
from tree import cases

TOY_X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.1, 0.0], [0.0, 0.5], [0.0, 0.0]])
TOY_Z = np.array(
    [
        [0.0, 0.5, 0.5, 0.5, 0.5, 0.0],
        [0.5, 0.0, 1.0, 0.0, 1.0, 0.5],
        [0.5, 1.0, 0.0, 1.0, 0.0, 0.5],
        [0.5, 0.0, 1.0, 0.0, 1.0, 0.5],
        [0.5, 1.0, 0.0, 1.0, 0.0, 0.5],
        [0.0, 0.5, 0.5, 0.5, 0.5, 0.0],
    ]
)
LINE_X = np.array([[-2.5], [-1.5], [-0.5], [0.5], [1.5], [2.5]])
LINE_Q = np.eye(6)  # similarities
LINE_Q[[1, 2, 3, 4], [2, 1, 4, 3]] = 0.5


def sides(tree, X, node=0):
    """Return the rows left and right of one split, as two sets."""
    reached = cases.through(tree, X)
    return {frozenset(np.flatnonzero(reached[k])) for k in (node + 1, tree.right[node])}


def members(tree, X):
    """Rows of each leaf, as a set of sets."""
    return {frozenset(np.flatnonzero(r)) for r in cases.through(tree, X)[leaf_nodes(tree)]}


# Known answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("key", range(4))
def test_grow__gives_the_known_tree_of_the_square_toy(key):
    tree = cases.grow_on(TOY_X, cases.precomputed(TOY_Z), key=key)
    assert naive.mean_distance(TOY_Z, np.ones(6)) == pytest.approx(4 / 9)
    assert tree.gain[0] == pytest.approx(5 / 3)
    root = (tree.feature[0], tree.threshold[0])
    assert root in {(0, 0.5), (1, 0.25)}  # tied: the feature drawn first
    assert sides(tree, TOY_X) == (
        {frozenset({0, 2, 4, 5}), frozenset({1, 3})}
        if root[0] == 0
        else {frozenset({0, 1, 3, 5}), frozenset({2, 4})}
    )
    assert members(tree, TOY_X) == {frozenset(s) for s in ({0, 5}, {2, 4}, {1, 3})}
    assert sorted(tree.gain[tree.right >= 0]) == pytest.approx([1.0, 5 / 3])


def test_grow__gives_the_known_root_of_the_line_toy():
    tree = cases.grow_on(LINE_X, cases.precomputed(1 - LINE_Q), max_depth=1)
    assert (tree.feature[0], tree.threshold[0]) == (0, 0.0)
    assert tree.gain[0] == pytest.approx(4 / 3)
    without = cases.grow_on(LINE_X, cases.precomputed(-LINE_Q), max_depth=1)
    assert without.gain[0] == pytest.approx(4 / 3)  # a constant cancels


# The slow twin ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", cases.KINDS)
@cases.some
@given(seed=cases.seeds)
def test_grow__finds_the_best_of_all_cuts_at_every_node(kind, seed):
    rng = np.random.default_rng(seed)
    n, p, min_leaf = rng.integers(2, 25), rng.integers(1, 4), int(rng.integers(1, 4))
    X, w = cases.columns(rng, n, p), cases.bag(rng, n, rng.choice([1, 3]))
    crit, z = cases.make(rng, kind, n)
    tree = cases.grow_on(X, crit, w, seed, min_leaf=min_leaf, block_rows=rng.choice([5, 1000]))

    def best(weights):
        found = naive.best_cut(X, z, weights, min_leaf)
        return found[0] if found else 0.0

    cases.check_gains(tree, X, z, w, best)


@pytest.mark.parametrize("kind", ["matrix", "signed", "graph", "half_squared", "absolute"])
@cases.some
@given(seed=cases.seeds)
def test_grow__is_the_twin_where_no_cuts_are_tied(kind, seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 25)
    X, w = rng.random((n, 1)), cases.bag(rng, n)
    crit, z = cases.make(rng, kind, n)
    mine, twin = cases.grow_on(X, crit, w, min_leaf=2), naive.grow(X, z, w, min_samples_leaf=2)
    assert mine.feature.tolist() == [node.feature for node in twin]
    assert np.isfinite(mine.threshold).tolist() == [node.feature >= 0 for node in twin]
    drawn = w > 0  # between drawn rows the twin's threshold is as good as ours
    np.testing.assert_array_equal(cases.through(mine, X)[:, drawn], naive.below(twin, X)[:, drawn])


@pytest.mark.parametrize("kind", cases.KINDS)
def test_grow__counts_a_row_as_often_as_it_was_drawn(kind):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, w = 12, rng.integers(1, 50, 12)
        X, (crit, z) = rng.random((n, 2)), cases.make(rng, kind, n)
        tree = cases.grow_on(X, crit, w, min_leaf=30)
        best = naive.best_cut(X, z, w, 30)
        assert tree.gain[0] == pytest.approx(best[0] if best else 0.0, rel=1e-5, abs=1e-5)


# Propositions 1 and 2 --------------------------------------------------------------------------


def cart_gain(stump, X, y, w):
    """Equations (4) and (5) of scikit-learn's own first split."""
    tree = stump.fit(X, y, sample_weight=w).tree_
    share = tree.impurity * tree.weighted_n_node_samples
    return share[0] - share[1:].sum() if tree.node_count == 3 else 0.0


@cases.some
@given(seed=cases.seeds)
def test_indicator__gains_what_the_gini_criterion_gains(seed):
    rng = np.random.default_rng(seed)
    n = 40
    X, y, w = cases.columns(rng, n, 3).astype(np.float32), rng.integers(0, 3, n), cases.bag(rng, n)
    tree = cases.grow_on(X, Indicator(y.astype(np.int32), 3), w)
    for node, here in enumerate(cases.through(tree, X)):
        here = here & (w > 0)
        cart = cart_gain(DecisionTreeClassifier(max_depth=1), X[here], y[here], w[here])
        assert tree.gain[node] == pytest.approx(cart, abs=1e-9)


@cases.some
@given(seed=cases.seeds)
def test_half_squared__gains_what_the_variance_criterion_gains(seed):
    rng = np.random.default_rng(seed)
    n, q = 40, int(rng.integers(1, 4))
    X, w = cases.columns(rng, n, 3).astype(np.float32), cases.bag(rng, n)
    y = rng.normal(size=(n, q)) + X[:, :1]
    tree = cases.grow_on(X, HalfSquared(y), w)
    for node, here in enumerate(cases.through(tree, X)):
        here = here & (w > 0)
        cart = cart_gain(DecisionTreeRegressor(max_depth=1), X[here], y[here], w[here])
        assert tree.gain[node] == pytest.approx(q * cart, abs=1e-7)  # ours sums over columns


# One notion in two forms -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["graph", "indicator", "half_squared", "absolute"])
@cases.some
@given(seed=cases.seeds)
def test_closed_forms__grow_the_tree_of_the_matrix_they_stand_for(kind, seed):
    rng = np.random.default_rng(seed)
    X, w = cases.columns(rng, 60, 3), cases.bag(rng, 60)
    crit, z = cases.make(rng, kind, 60, grain=1 / 32)
    one = cases.grow_on(X, crit, w, seed, min_leaf=3, max_features=2)
    other = cases.grow_on(X, cases.precomputed(z), w, seed, min_leaf=3, max_features=2)
    np.testing.assert_allclose(one.gain, other.gain, rtol=1e-9, atol=1e-9)
    cases.same_trees(one._replace(gain=other.gain), other)


@cases.some
@given(seed=cases.seeds)
def test_pairs__grow_the_tree_of_a_matrix_with_nan_elsewhere(seed):
    rng = np.random.default_rng(seed)
    n = 80
    X, w = rng.random((n, 3)), cases.bag(rng, n)
    z = cases.matrix(rng, n, unknown=rng.choice([0.3, 0.7, 0.95]))
    one = cases.grow_on(X, cases.pairs(z), w, seed, max_features=2, min_leaf=1)
    other = cases.grow_on(X, cases.precomputed(z), w, seed, max_features=2, min_leaf=1)
    np.testing.assert_array_equal(one.feature, other.feature)
    np.testing.assert_array_equal(one.threshold, other.threshold)
    np.testing.assert_allclose(one.gain, other.gain, atol=1e-5)


def test_pairs__of_nothing_known_give_one_leaf():
    X, nothing = np.arange(5.0)[:, None], np.full((5, 5), np.nan)
    assert n_leaves(cases.grow_on(X, cases.precomputed(nothing))) == 1
    assert n_leaves(cases.grow_on(X, listed([], [], [], 5))) == 1


def test_pairs__a_row_without_a_known_pair_goes_where_its_features_say():
    rng = np.random.default_rng(0)
    z = cases.matrix(rng, 20)
    z[7] = z[:, 7] = np.nan
    X, w = rng.random((20, 2)), np.ones(20, int)
    tree = cases.grow_on(X, cases.precomputed(z))
    cases.check_gains(
        tree, X, z.astype(float), w, lambda w: (naive.best_cut(X, z.astype(float), w) or [0])[0]
    )


# Values of z -----------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-120, -100, -40, 40, 100, 120])
def test_precomputed__does_not_mind_the_unit_of_z(power):
    rng = np.random.default_rng(0)
    X, w = rng.random((30, 2)), cases.bag(rng, 30, 50)
    z = np.rint(cases.matrix(rng, 30, signed=True) * 64) / np.float32(64)
    one = cases.grow_on(X, cases.precomputed(z), w)
    other = cases.grow_on(X, cases.precomputed(np.ldexp(z, power)), w)
    cases.same_trees(one._replace(gain=np.ldexp(one.gain, power)), other)


@pytest.mark.parametrize("unit", [1e-30, 1e30])
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_precomputed__learns_from_very_small_and_very_large_z(unit, unknown):
    rng = np.random.default_rng(1)
    X, w = rng.random((20, 2)), np.ones(20, int)
    z = (cases.matrix(rng, 20, unknown=unknown) * np.float32(unit)).astype(float)
    tree = cases.grow_on(X, cases.precomputed(z))
    assert n_leaves(tree) > 5
    cases.check_gains(tree, X, z, w, lambda w: (naive.best_cut(X, z, w) or [0.0])[0])


def test_precomputed__learns_beside_an_outlier():
    rng = np.random.default_rng(2)
    z = cases.matrix(rng, 25).astype(float)
    z[3, 11] = z[11, 3] = 1e9
    X, w = rng.random((25, 2)), np.ones(25, int)
    tree = cases.grow_on(X, cases.precomputed(z))
    cases.check_gains(tree, X, z, w, lambda w: (naive.best_cut(X, z, w) or [0.0])[0])
    ends = cases.through(tree, X)[leaf_nodes(tree)]
    assert not (ends[:, 3] & ends[:, 11]).any()


def test_precomputed__sums_halves_that_half_precision_cannot_sum():
    rng = np.random.default_rng(3)
    Z = (rng.random((200, 200)) * 900).astype(np.float16)
    Z = np.maximum(Z, Z.T)
    with np.errstate(over="ignore"):
        assert np.isinf(Z.sum(axis=1, dtype=np.float16)).any()
    X = rng.random((200, 2))
    halves = as_distances(Z, 200)
    doubles = as_distances(Z.astype(float), 200)
    cases.same_trees(
        *(cases.grow_on(X, cases.precomputed(each.z), min_leaf=9) for each in (halves, doubles))
    )


@pytest.mark.parametrize("value", [0.0, 1.0, -0.3, 1e-30])
@pytest.mark.parametrize("unknown", [0.0, 0.5])
def test_precomputed__constant_z_gives_one_leaf(value, unknown):
    rng = np.random.default_rng(4)
    z = np.where(np.isnan(cases.matrix(rng, 30, unknown=unknown)), np.nan, value)
    w = cases.bag(rng, 30)
    for crit in (cases.precomputed(z), cases.pairs(z)):
        assert n_leaves(cases.grow_on(rng.random((30, 2)), crit, w)) == 1


@pytest.mark.parametrize("kind", cases.KINDS)
def test_grow__of_one_row_or_of_equal_rows_is_one_leaf(kind):
    rng = np.random.default_rng(5)
    crit, _ = cases.make(rng, kind, 12)
    one = cases.grow_on(np.ones((12, 3)), crit, np.eye(12, dtype=int)[4] * 7)
    assert one.weight.tolist() == [7.0]
    assert one.feature.tolist() == [-1]
    assert n_leaves(cases.grow_on(np.ones((12, 3)), crit)) == 1


def test_grow__leaves_its_arrays_as_they_were():
    rng = np.random.default_rng(6)
    z, X, rows, w = cases.matrix(rng, 30), rng.random((30, 2)), np.arange(30), np.ones(30)
    crit, before = cases.precomputed(z), z.copy()
    table = cases.make_table(X)
    codes = table.codes.copy()
    grow(table, crit, rows, w, 0, cases.limits(max_features=2))
    np.testing.assert_array_equal(crit.origin, before)
    np.testing.assert_array_equal(table.codes, codes)
    np.testing.assert_array_equal(rows, np.arange(30))
