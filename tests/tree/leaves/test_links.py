"""Tables of listed pairs, against equation (2) and against the table of the full matrix."""

import numpy as np
import pytest
from hypothesis import given

from dforest.tree import leaves
from dforest.tree.layout import n_leaves
from tree import cases


@pytest.mark.parametrize("kind", ["pairs", "graph"])
@pytest.mark.parametrize("self_pairs", [True, False])
@cases.some
@given(seed=cases.seeds)
def test_link_table__is_the_mean_over_pairs_of_drawn_rows(kind, self_pairs, seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 30)
    X, w, (crit, z) = rng.random((n, 2)), cases.bag(rng, n), cases.make(rng, kind, n)
    tree = cases.grow_on(X, crit, w, min_leaf=int(rng.integers(1, 4)))
    for voters in (w, np.maximum(1 - w, 0), w * 50):
        table, _ = cases.table_of(tree, X, z, kind, voters, self_pairs=self_pairs)
        cases.check_table(table, tree, X, z, voters, self_pairs=self_pairs)


@pytest.mark.parametrize("unknown", [0.3, 0.9])
def test_link_table__of_pairs_is_the_table_of_a_matrix_with_nan_elsewhere(unknown):
    rng = np.random.default_rng(0)
    X, w, z = rng.random((80, 2)), cases.bag(rng, 80), cases.matrix(rng, 80, unknown=unknown)
    tree = cases.grow_on(X, cases.precomputed(z), w, min_leaf=2)
    every = np.arange(n_leaves(tree), dtype=np.int32)
    (one, pairs), (other, known) = (
        leaves.grid(cases.table_of(tree, X, z, kind, w)[0], every, every)
        for kind in ("pairs", "matrix")
    )
    np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_array_equal(pairs, known)


def test_link_table__takes_the_memory_of_its_pairs():
    rng = np.random.default_rng(1)
    X, i = rng.random((2000, 1)), np.arange(1999, dtype=np.int32)
    y = rng.random((2000, 1))
    tree = cases.grow_on(X, cases.criteria.HalfSquared(y))
    w, shape = np.ones(2000), leaves.shape_of(tree)
    leaf = np.argsort(np.argsort(X[:, 0])).astype(np.int32)
    table = leaves.link_table(shape, leaf, w, i, i + 1, np.zeros(1999), 1.0, 2.0**30, True)
    assert n_leaves(tree) == 2000
    assert sum(array.nbytes for array in table if isinstance(array, np.ndarray)) < 500 * 2000
