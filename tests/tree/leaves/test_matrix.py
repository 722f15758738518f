"""Tables of distances read from a matrix, against equation (2) pair by pair."""

import naive
import numpy as np
import pytest
from hypothesis import given

from dforest.tree import leaves
from dforest.tree.layout import best_first, leaf_nodes, n_leaves, pruned
from dforest.tree.leaves.sums import triangle
from dforest.tree.route import route
from tree import cases


def grown(rng, n, *, unknown=0.0, signed=False, **said):
    """Return X, z, weights and a tree on them."""
    X, z, w = (
        rng.random((n, 2)),
        cases.matrix(rng, n, unknown=unknown, signed=signed),
        cases.bag(rng, n),
    )
    return X, z, w, cases.grow_on(X, cases.precomputed(z), w, **{"min_leaf": 2} | said)


@cases.some
@given(seed=cases.seeds)
def test_matrix_table__is_the_mean_over_pairs_of_drawn_rows(seed):
    rng = np.random.default_rng(seed)
    X, z, w, tree = grown(rng, rng.integers(2, 30), signed=bool(seed % 2))
    z = z.astype(float)
    for voters in (w, np.ones(len(w), int), w * 50):
        for self_pairs in (True, False):
            table, _ = cases.table_of(tree, X, z, "matrix", voters, self_pairs=self_pairs)
            cases.check_table(table, tree, X, z, voters, self_pairs=self_pairs)


@pytest.mark.parametrize("unknown", [0.3, 0.8, 0.98])
@pytest.mark.parametrize("self_pairs", [True, False])
def test_matrix_table__falls_back_to_parents_and_counts_it(unknown, self_pairs):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, z, w, tree = grown(rng, 30, unknown=unknown)
        z = z.astype(float)
        table, n_filled = cases.table_of(tree, X, z, "matrix", w, self_pairs=self_pairs)
        cases.check_table(table, tree, X, z, w, self_pairs=self_pairs)
        counts = naive.leaf_table(cases.as_naive(tree), X, z, w, self_pairs).counts
        assert n_filled == (np.tril(counts == 0) & np.tri(len(counts), dtype=bool)).sum()


def test_matrix_table__of_voters_out_of_bag_fills_empty_leaves():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, z, w, tree = grown(rng, 40, min_leaf=1)
        z, voters = z.astype(float), (w == 0).astype(int)
        assert len(set(route(tree, X[w == 0]))) < n_leaves(tree)
        table, n_filled = cases.table_of(tree, X, z, "matrix", voters)
        cases.check_table(table, tree, X, z, voters)
        assert n_filled > 0


def test_matrix_table__without_any_known_pair_is_nan():
    X, z = np.arange(4.0)[:, None], 1 - np.eye(4)
    tree = cases.grow_on(X, cases.precomputed(z))
    table, _ = cases.table_of(tree, X, np.full((4, 4), np.nan), "matrix", np.ones(4, int))
    means, pairs = leaves.grid(table, *2 * (np.arange(4, dtype=np.int32),))
    assert np.isnan(means).all()
    assert not pairs.any()


def test_matrix_table__of_the_toy_is_the_known_one():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.1, 0.0], [0.0, 0.5], [0.0, 0.0]])
    groups = np.array([0, 2, 1, 2, 1, 0])  # leaves {0, 5}, {2, 4}, {1, 3}
    H = np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 1.0], [0.5, 1.0, 0.0]])
    z = H[np.ix_(groups, groups)]
    tree = cases.grow_on(X, cases.precomputed(z))
    table, _ = cases.table_of(tree, X, z, "matrix", np.ones(6, int))
    first = route(tree, X)[[0, 2, 1]]
    np.testing.assert_array_equal(leaves.grid(table, first, first)[0], H)


def test_matrix_table__answers_the_known_similarities_of_the_line_toy():
    X, Q = np.array([[-2.5], [-1.5], [-0.5], [0.5], [1.5], [2.5]]), np.eye(6)
    Q[[1, 2, 3, 4], [2, 1, 4, 3]] = 0.5
    tree = cases.grow_on(X, cases.precomputed(1 - Q))
    table, _ = cases.table_of(tree, X, 1 - Q, "matrix", np.ones(6, int))
    leaf = route(tree, np.array([[1.25], [0.75], [-0.75]]))
    expected = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
    np.testing.assert_array_equal(1 - leaves.grid(table, leaf, leaf)[0], expected)


@pytest.mark.parametrize("max_cells", [1, 2, 5, 9])
@pytest.mark.parametrize("unknown", [0.0, 0.9])
def test_cells_within__give_the_table_of_the_pruned_tree(max_cells, unknown):
    X, z, w, tree = grown(np.random.default_rng(3), 60, unknown=unknown)
    assert n_leaves(tree) > 9
    small = pruned(tree, best_first(tree, max_cells))
    assert n_leaves(small) == leaves.cells_within(tree, max_cells).max() + 1 == max_cells
    one, n_filled = cases.table_of(tree, X, z, "matrix", w, max_cells=max_cells)
    other, n_filled_small = cases.table_of(small, X, z, "matrix", w)
    mine, yours = route(tree, X), route(small, X)
    for got, wanted in zip(
        leaves.grid(one, mine, mine), leaves.grid(other, yours, yours), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
    assert n_filled == n_filled_small
    assert len(one.mean) == max_cells * (max_cells + 1) // 2


def test_cells_within__keep_all_leaves_when_they_fit():
    tree = grown(np.random.default_rng(4), 30)[3]
    for room in (n_leaves(tree), 10**6):
        assert leaves.cells_within(tree, room).tolist() == list(range(n_leaves(tree)))


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_square_sums__do_not_depend_on_the_order_of_rows(unknown):
    rng = np.random.default_rng(5)
    X, z, w, tree = grown(rng, 50, unknown=unknown, signed=True)
    rows, cell, L = np.flatnonzero(w), route(tree, X), n_leaves(tree)
    scale, order = leaves.matrix_scale(9.0, w.sum()), rng.permutation(len(rows))
    one, other = (
        leaves.square_sums(cell[r], L, z, r, w[r].astype(float), scale, True, unknown > 0)
        for r in (rows, rows[order])
    )
    for mine, yours in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, yours)


@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1e6, 1e30])
def test_matrix_table__does_not_mind_the_unit_of_z(unit):
    X, z, w, tree = grown(np.random.default_rng(6), 40)
    z = (z * np.float32(unit)).astype(float)
    cases.check_table(cases.table_of(tree, X, z, "matrix", w)[0], tree, X, z, w)


def test_matrix_table__holds_ones_beside_an_outlier():
    X, z, w, tree = grown(np.random.default_rng(7), 40)
    z = z.astype(float)
    z[3, 11] = z[11, 3] = 1e9
    table, _ = cases.table_of(tree, X, z, "matrix", w)
    twin = naive.leaf_table(cases.as_naive(tree), X, z, w).mean
    every = np.arange(len(twin), dtype=np.int32)
    np.testing.assert_allclose(leaves.grid(table, every, every)[0], twin, rtol=1e-5)


def test_triangle__numbers_unordered_pairs_row_by_row():
    places = [triangle(i, j) for i in range(20) for j in range(i + 1)]
    assert places == list(range(210))
    assert all(triangle(i, j) == triangle(j, i) for i in range(20) for j in range(20))


def test_leaf_nodes__are_where_cells_begin():
    tree = grown(np.random.default_rng(8), 30)[3]
    assert leaves.shape_of(tree).node.tolist() == leaf_nodes(tree).tolist()
