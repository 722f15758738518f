"""Preorder, and what follows from it."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dforest.tree.layout import (
    Tree,
    best_first,
    joined,
    leaf_nodes,
    leaf_ranges,
    n_leaves,
    parents,
    parted,
    pruned,
)
from tree import cases

SHAPES = st.recursive(st.just(None), lambda inner: st.tuples(inner, inner), max_leaves=20)


def built(shape, seed=0):
    """Return a tree of that shape: None is a leaf, (left, right) a split; random otherwise."""
    right, terms = [], []

    def add(shape):
        here = len(right)
        right.append(-1)
        if shape is not None:
            add(shape[0])
            right[here] = len(right)
            add(shape[1])

    add(shape)
    rng, m = np.random.default_rng(seed), len(right)
    inner = np.array(right) >= 0
    feature = np.full(m, -1, np.int32)
    for node in np.flatnonzero(inner):
        feature[node] = -2 - len(terms) if rng.random() < 0.5 else rng.integers(5)
        if feature[node] < -1:
            terms.append(rng.integers(0, 5, rng.integers(1, 4)))
    entries = np.concatenate([np.empty(0, np.int32), *terms]).astype(np.int32)
    return Tree(
        feature,
        np.where(inner, rng.normal(size=m), np.nan),
        np.array(right, np.int32),
        inner & (rng.random(m) < 0.5),
        np.where(inner, rng.random(m), 0.0),
        rng.integers(1, 9, m).astype(float),
        np.concatenate([[0], np.cumsum([len(t) for t in terms])]).astype(np.int64),
        entries,
        rng.choice([-1.0, 1.0], len(entries)),
    )


def below(tree, node):
    """Leaves below a node, from left to right, by walking."""
    if tree.right[node] < 0:
        return [node]
    return below(tree, node + 1) + below(tree, tree.right[node])


@cases.some
@given(SHAPES)
def test_leaf_ranges__number_the_leaves_below_every_node(shape):
    tree = built(shape)
    ends = leaf_nodes(tree)
    assert len(ends) == n_leaves(tree)
    assert ends.tolist() == below(tree, 0)
    first, stop = leaf_ranges(tree.right)
    for node in range(len(tree.right)):
        assert ends[first[node] : stop[node]].tolist() == below(tree, node)


@cases.some
@given(SHAPES)
def test_parents__are_who_points_at_a_node(shape):
    tree = built(shape)
    parent = parents(tree.right)
    assert parent[0] == 0
    assert [node.parent for node in cases.as_naive(tree)] == parent.tolist()


@cases.some
@given(st.lists(SHAPES, min_size=1, max_size=5))
def test_parted__undoes_joined(shapes):
    trees = [built(shape, seed) for seed, shape in enumerate(shapes)]
    for tree, back in zip(trees, parted(joined(trees)), strict=True):
        cases.same_trees(tree, back)


@cases.some
@given(SHAPES, st.integers(0, 99))
def test_pruned__with_every_split_is_the_tree_itself(shape, seed):
    tree = built(shape, seed)
    cases.same_trees(pruned(tree, tree.right >= 0), tree)


@cases.some
@given(SHAPES, st.integers(0, 99))
def test_pruned__sends_a_row_to_where_its_path_ends(shape, seed):
    tree, rng = built(shape, seed), np.random.default_rng(seed)
    kept = (rng.random(len(tree.right)) < 0.7) & (tree.right >= 0)
    X = rng.normal(size=(30, 5))
    small, reached = pruned(tree, kept), cases.through(tree, X)
    open_nodes = np.zeros(len(kept), bool)  # kept, and so are all above
    parent = parents(tree.right)
    for node in range(len(kept)):
        open_nodes[node] = kept[node] and (node == 0 or open_nodes[parent[node]])
    stays = [k for k in range(len(kept)) if k == 0 or open_nodes[parent[k]]]
    np.testing.assert_array_equal(cases.through(small, X), reached[stays])
    np.testing.assert_array_equal(small.weight, tree.weight[stays])
    assert len(small.columns) == small.starts[-1]


@cases.some
@given(SHAPES, st.integers(1, 25))
def test_best_first__keeps_parents_and_the_number_of_leaves(shape, max_leaves):
    tree = built(shape)
    kept = best_first(tree, max_leaves)
    assert not kept[tree.right < 0].any()
    assert kept[parents(tree.right)[kept]].all()
    assert kept.sum() + 1 == min(max_leaves, n_leaves(tree))


def test_best_first__opens_the_lowest_of_equals_first():
    tree = built(((None, None), (None, None)))._replace(gain=np.array([1.0, 2, 0, 0, 2, 0, 0]))
    assert best_first(tree, 3).tolist() == [True, True] + [False] * 5


def test_grown_trees__are_in_preorder():
    rng = np.random.default_rng(0)
    X, z = rng.random((40, 2)), cases.matrix(rng, 40)
    tree = cases.grow_on(X, cases.precomputed(z))
    np.testing.assert_array_equal(cases.through(tree, X), naive.below(cases.as_naive(tree), X))
    assert tree.weight[0] == 40
    inner = np.flatnonzero(tree.right >= 0)
    total = tree.weight[inner + 1] + tree.weight[tree.right[inner]]
    assert total == pytest.approx(tree.weight[inner])
