"""The leaf of every row, by walking the tree step by step."""

import numpy as np
import pytest
from hypothesis import given

from dforest.tree.layout import leaf_nodes
from dforest.tree.route import route
from tree import cases


@pytest.mark.parametrize("oblique", [False, True])
@cases.some
@given(seed=cases.seeds)
def test_route__is_the_walk_down_the_tree(oblique, seed):
    rng = np.random.default_rng(seed)
    X = cases.columns(rng, 40, 3)
    X[rng.random(X.shape) < 0.1] = np.nan
    tree = cases.grow_on(X, cases.precomputed(cases.matrix(rng, 40)), key=seed, oblique=oblique)
    queries = rng.normal(size=(50, 3))
    queries[rng.random(queries.shape) < 0.2] = np.nan
    for block in (X, queries, queries.astype(np.float32), queries[:0]):
        leaf = route(tree, block)
        assert leaf.dtype == np.int32
        reached = cases.through(tree, block)[leaf_nodes(tree)]
        np.testing.assert_array_equal(leaf, reached.argmax(axis=0) if len(block) else [])


def test_route__sends_infinities_to_the_ends():
    rng = np.random.default_rng(0)
    X = rng.random((30, 1))
    tree = cases.grow_on(X, cases.precomputed(cases.matrix(rng, 30)))
    ends = route(tree, np.array([[-np.inf], [np.inf]]))
    assert ends.tolist() == [0, len(leaf_nodes(tree)) - 1]
    assert ends.tolist() == route(tree, np.array([X.min(axis=0), X.max(axis=0)])).tolist()
