"""Columns to cut: single features with unknown values, and sparse sums of features."""

import naive
import numpy as np
import pytest
from hypothesis import given

from dforest.seeds import child_key, draw_below
from dforest.tree.candidates import MAX_TERMS, draw_terms, order_codes, project
from dforest.tree.layout import leaf_nodes, n_leaves
from dforest.tree.route import route
from tree import cases


def gains_with_nan(x, z, w, min_rows):
    """Gains of all allowed cuts of a column (n,) whose unknown values go left, or right."""
    z, unknown, found = naive.filled(z, w), np.isnan(x), [0.0]
    for top in np.unique(x[(w > 0) & ~unknown]):
        sides = x <= top, (x <= top) | unknown
        allowed = (s for s in sides if min(w[s].sum(), w[~s].sum()) >= min_rows)
        found += [naive.gain_of(z, w, side) for side in allowed]
    return found


@pytest.mark.parametrize("kind", cases.KINDS)
@cases.some
@given(seed=cases.seeds)
def test_axis_columns__send_nan_to_the_side_that_gains_more(kind, seed):
    rng = np.random.default_rng(seed)
    n, min_leaf = rng.integers(2, 20), int(rng.integers(1, 4))
    X, w = cases.columns(rng, n, 3), cases.bag(rng, n)
    X[rng.random(X.shape) < rng.choice([0.05, 0.4])] = np.nan
    crit, z = cases.make(rng, kind, n)
    tree = cases.grow_on(X, crit, w, seed, min_leaf=min_leaf)
    cases.check_gains(
        tree, X, z, w, lambda w: max(max(gains_with_nan(x, z, w, min_leaf)) for x in X.T)
    )
    leaf = route(tree, X)
    np.testing.assert_array_equal(
        np.bincount(leaf, w, n_leaves(tree)), tree.weight[leaf_nodes(tree)]
    )


def test_axis_columns__part_nan_from_all_known_values():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    z = naive.indicator([0, 0, 1, 1])
    tree = cases.grow_on(X, cases.precomputed(z))
    assert tree.threshold[0] == np.inf
    assert not tree.missing_left[0]
    assert tree.gain[0] == pytest.approx(2.0)
    assert route(tree, np.array([[np.inf], [np.nan], [-np.inf]])).tolist() == [0, 1, 0]


@pytest.mark.parametrize(("heavy", "leaf"), [(0, 0), (1, 1)])
def test_axis_columns__without_nan_send_it_to_the_larger_side(heavy, leaf):
    X, w = np.array([[0.0], [1.0]]), np.array([2, 2])
    w[heavy] += 1
    tree = cases.grow_on(X, cases.precomputed(1 - np.eye(2)), w)
    assert route(tree, np.array([[np.nan]])).tolist() == [leaf]


def drawn_columns(key, p, wanted, X, here):
    """Return the values (n,) of the oblique columns that a node of this key looks at."""
    terms, signs = np.empty(MAX_TERMS, np.int32), np.empty(MAX_TERMS)
    found = []
    for turn in range(4 * wanted):
        draw_terms(key, turn, p, terms, signs)
        x = np.array([project(row, terms, signs) for row in X])
        if len(np.unique(x[here])) > 1:
            found.append(x)
        if len(found) == wanted:
            break
    return found


@pytest.mark.parametrize("kind", ["matrix", "half_squared"])
@pytest.mark.parametrize("share_unknown", [0.0, 0.15])
def test_oblique_columns__gain_the_best_of_the_columns_drawn(kind, share_unknown):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, p = 18, int(rng.integers(1, 6))
        X, w = cases.columns(rng, n, p), cases.bag(rng, n)
        X[rng.random(X.shape) < share_unknown] = np.nan
        crit, z = cases.make(rng, kind, n)
        tree = cases.grow_on(X, crit, w, seed, oblique=True, max_features=3, min_leaf=2)
        reached = cases.through(tree, X)
        keys = {0: np.uint64(seed)}
        for node, here in enumerate(reached):
            inside = w * here
            columns = drawn_columns(keys[node], p, 3, X, inside > 0)
            best = max((max(gains_with_nan(x, z, inside, 2)) for x in columns), default=0.0)
            assert tree.gain[node] == pytest.approx(best, rel=1e-5, abs=1e-5)
            assert tree.weight[node] == inside.sum()
            if tree.right[node] >= 0:
                keys[node + 1] = np.uint64(child_key(keys[node], 0))
                keys[tree.right[node]] = np.uint64(child_key(keys[node], 1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_oblique_columns__return_a_training_row_to_its_leaf(dtype):
    rng = np.random.default_rng(0)
    X = np.concatenate([[1.9, 16_777_217.0, 1e-7, 0.1], rng.normal(size=296)]).astype(dtype)
    X = np.column_stack([X, X * 3, np.nextafter(X, dtype(9e9))])
    tree = cases.grow_on(X, cases.precomputed(cases.matrix(rng, 300)), oblique=True)
    assert (tree.feature < -1).any()
    counts = np.bincount(route(tree, X), minlength=n_leaves(tree))
    np.testing.assert_array_equal(counts, tree.weight[leaf_nodes(tree)])


def test_draw_terms__draws_different_features_within_reach():
    terms, signs = np.empty(MAX_TERMS, np.int32), np.empty(MAX_TERMS)
    sizes, seen = set(), set()
    for p in (1, 2, 3, 50):
        for turn in range(200):
            draw_terms(np.uint64(p), turn, p, terms, signs)
            got = terms[terms >= 0]
            assert len(set(got)) == len(got) <= min(p, MAX_TERMS)
            assert got.max() < p
            assert set(np.abs(signs)) == {1.0}
            sizes.add(len(got))
            seen |= set(signs[: len(got)])
    assert sizes == {1, 2, 3, 4}
    assert seen == {-1.0, 1.0}


@cases.some
@given(seed=cases.seeds)
def test_order_codes__sorts_and_keeps_equals_in_place(seed):
    rng = np.random.default_rng(seed)
    span = int(rng.choice([1, 5, 300, 70_000, 2**31]))
    codes = rng.integers(0, span, rng.integers(1, 200))
    np.testing.assert_array_equal(order_codes(codes, span), np.argsort(codes, kind="stable"))


# Ties ------------------------------------------------------------------------------------------


def drawn_order(key, p):
    """Features in the order in which a node of this key looks at them."""
    order = np.arange(p)
    for turn in range(p):
        other = turn + draw_below(np.uint64(key), turn, p - turn)
        order[turn], order[other] = order[other], order[turn]
    return order


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("key", range(6))
def test_ties__of_equal_partitions_go_to_the_feature_drawn_first(kind, key):
    rng = np.random.default_rng(0)
    crit, _ = cases.make(rng, kind, 40)
    x = rng.random(40)
    X = np.column_stack([x, x * 3, -x, x**3, np.ones(40)])  # one way to part the rows, four times
    tree = cases.grow_on(X, crit, cases.bag(rng, 40), key, max_depth=1)
    assert tree.feature[0] == next(f for f in drawn_order(key, 5) if f < 4)


def test_ties__of_one_feature_go_to_the_lowest_cut():
    X = np.arange(3.0)[:, None]
    for z in (abs(X - X.T), 1 - np.eye(3)):  # the first and the last row part equally well
        for crit in (cases.precomputed(z), cases.graph(1.5 - z - 1.5 * np.eye(3), 1.5)):
            assert cases.grow_on(X, crit, max_depth=1).threshold[0] == 0.5


@pytest.mark.parametrize("key", range(4))
def test_constant_features__do_not_count_towards_max_features(key):
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones((30, 6)), rng.random(30)])
    tree = cases.grow_on(X, cases.precomputed(cases.matrix(rng, 30)), key=key, max_features=1)
    assert n_leaves(tree) > 10
    assert set(tree.feature) == {-1, 6}
