"""Factored tables: what two leaves hold tells their distance."""

import naive
import numpy as np
import pytest
from hypothesis import given
from sklearn.tree import DecisionTreeRegressor

from dforest.tree import leaves
from dforest.tree.criteria import Absolute, HalfSquared, Indicator
from dforest.tree.layout import n_leaves
from dforest.tree.route import route
from tree import cases


def classes(tree, X, y, weights, self_pairs=True):
    """Table of class codes y (n,)."""
    rows = np.flatnonzero(weights)
    voters = route(tree, X)[rows], weights[rows].astype(float)
    return leaves.class_table(leaves.shape_of(tree), *voters, y[rows], 4, self_pairs)


def moments(tree, X, y, weights, self_pairs=True):
    """Table of responses y (n, q)."""
    rows, centre = np.flatnonzero(weights), y.mean(axis=0)
    voters = route(tree, X)[rows], weights[rows].astype(float)
    return leaves.moment_table(leaves.shape_of(tree), *voters, y[rows], centre, self_pairs)


def values(tree, X, y, weights, self_pairs=True):
    """Table of responses y (n,), sorted."""
    rows = np.flatnonzero(weights)
    voters = route(tree, X)[rows], weights[rows].astype(float)
    return leaves.value_table(leaves.shape_of(tree), *voters, y[rows], self_pairs)


FORMS = {
    "indicator": (
        classes,
        naive.indicator,
        lambda y: Indicator(y, 4),
        lambda rng, n: rng.integers(0, 4, n).astype(np.int32),
    ),
    "half_squared": (
        moments,
        naive.half_squared,
        HalfSquared,
        lambda rng, n: rng.normal(size=(n, 3)) * 4 + 100,
    ),
    "absolute": (
        values,
        naive.absolute,
        Absolute,
        lambda rng, n: np.rint(rng.normal(size=n) * 9) + 99,
    ),
}


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("self_pairs", [True, False])
@cases.some
@given(seed=cases.seeds)
def test_factored_tables__are_the_means_over_pairs_of_drawn_rows(kind, self_pairs, seed):
    form, distance, criterion, draw = FORMS[kind]
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 30)
    X, w, y = rng.random((n, 2)), cases.bag(rng, n), draw(rng, n)
    tree = cases.grow_on(X, criterion(y), w, min_leaf=int(rng.integers(1, 4)))
    for voters in (w, (w == 0).astype(int), w * 50):
        if voters.any():
            table = form(tree, X, y, voters, self_pairs)
            cases.check_table(table, tree, X, distance(y), voters, self_pairs=self_pairs)


@pytest.mark.parametrize("kind", FORMS)
def test_factored_tables__do_not_depend_on_the_order_of_rows(kind):
    form, _, criterion, draw = FORMS[kind]
    rng = np.random.default_rng(0)
    X, w, y, order = rng.random((60, 2)), cases.bag(rng, 60), draw(rng, 60), rng.permutation(60)
    if kind == "half_squared":
        y -= y.mean(axis=0)  # about one centre
    tree = cases.grow_on(X, criterion(y), w, min_leaf=3)
    every = np.arange(n_leaves(tree), dtype=np.int32)
    one = leaves.grid(form(tree, X, y, w), every, every)[0]
    other = leaves.grid(form(tree, X[order], y[order], w[order]), every, every)[0]
    np.testing.assert_allclose(one, other, rtol=1e-12 if kind == "half_squared" else 0)
    np.testing.assert_array_equal(one, one.T)


def test_equation_13__one_row_leaves_give_half_the_squared_difference_of_predictions():
    rng = np.random.default_rng(1)
    X, y, queries = rng.random((40, 3)), rng.normal(size=(40, 1)), rng.random((25, 3))
    by_tree, predictions = [], []
    for key in range(7):
        w = rng.integers(0, 2, 40)
        tree = cases.grow_on(X, HalfSquared(y), w, key, max_features=1)
        assert (np.bincount(route(tree, X[w > 0])) == 1).all()
        leaf, mean = route(tree, queries), np.empty(n_leaves(tree))
        mean[route(tree, X[w > 0])] = y[w > 0, 0]
        found = leaves.grid(moments(tree, X, y, w), leaf, leaf)[0]
        m = mean[leaf]
        np.testing.assert_allclose(found, (m[:, None] - m) ** 2 / 2, atol=1e-12)
        by_tree.append(found)
        predictions.append(m)
    # equation (15): the forest's distance is that of its predictions, and half their spread
    apart = np.array(predictions)[:, :, None] - np.array(predictions)[:, None]
    expected = (apart.mean(axis=0) ** 2 + apart.var(axis=0)) / 2
    np.testing.assert_allclose(np.mean(by_tree, axis=0), expected, atol=1e-12)


def test_equation_13__holds_for_the_full_tree_of_scikit_learn():
    rng = np.random.default_rng(2)
    X, y, queries = rng.random((50, 1)), rng.normal(size=(50, 1)), rng.random((30, 1))
    tree = cases.grow_on(X, HalfSquared(y))
    m = DecisionTreeRegressor().fit(X, y).predict(queries)
    leaf = route(tree, queries)
    found = leaves.grid(moments(tree, X, y, np.ones(50)), leaf, leaf)[0]
    np.testing.assert_allclose(found, (m[:, None] - m) ** 2 / 2, atol=1e-12)


def test_moment_table__holds_small_spreads_beside_an_outlier():
    rng = np.random.default_rng(3)
    X, y = np.arange(40.0)[:, None], rng.normal(size=(40, 1))
    y[39] = 1e9
    tree = cases.grow_on(X, HalfSquared(y), min_leaf=10)
    table = moments(tree, X, y, np.ones(40))
    own = leaves.between_leaves(table, 0, 0)[0]
    inside = y[route(tree, X) == 0]
    assert own == pytest.approx(inside.var(), rel=1e-6)
