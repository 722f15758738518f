"""What leaves predict: known answers, empty leaves, and votes left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dforest.tree.leaves import (
    Own,
    class_table,
    median_places,
    moment_table,
    seats,
    value_at,
    value_table,
    vote_table,
)
from dforest.tree.leaves.verbs import Shape

# the root has a leaf 0 and a node 2 with leaves 1 and 2
SHAPE = Shape(*map(np.array, ([1, 3, 4], [0, 0, 1, 1, 2], [3, 1, 3, 2, 3], [0, 0, 0, 2, 2])))


def tables(leaf, w, y):
    leaf, w, y = np.asarray(leaf), np.asarray(w, float), np.asarray(y)
    return {
        "classes": class_table(SHAPE, leaf, w, y, 3, True),
        "moments": moment_table(SHAPE, leaf, w, y[:, None].astype(float), np.zeros(1), True),
        "values": value_table(SHAPE, leaf, w, y.astype(float), True),
    }


def test_vote_table__is_shares_means_and_medians():
    found = tables([0, 0, 0, 1, 2], [1, 1, 2, 1, 1], [0, 1, 2, 1, 0])
    shares = [[0.25, 0.25, 0.5], [0, 1, 0], [1, 0, 0]]
    np.testing.assert_array_equal(vote_table(found["classes"]).value, shares)
    np.testing.assert_array_equal(vote_table(found["moments"]).value, [[1.25], [1], [0]])
    np.testing.assert_array_equal(vote_table(found["values"]).value, [[1.5], [1], [0]])
    for table in found.values():
        np.testing.assert_array_equal(vote_table(table).weight, [4, 1, 1])


@pytest.mark.parametrize("kind", ["classes", "moments", "values"])
def test_vote_table__of_empty_leaves_says_what_their_ancestor_says(kind):
    brother = tables([0, 2, 2, 2], [1, 1, 1, 1], [2, 0, 1, 1])[kind]
    table = vote_table(brother)
    np.testing.assert_array_equal(table.weight, [1, 0, 3])
    np.testing.assert_array_equal(table.value[1], table.value[2])
    root = vote_table(tables([0, 0, 0], [1, 1, 1], [0, 0, 1])[kind])
    np.testing.assert_array_equal(root.value[[1, 2]], root.value[[0, 0]])


@pytest.mark.parametrize("kind", ["classes", "moments", "values"])
def test_value__of_own_votes_left_out_is_that_of_the_others(kind):
    leaf, w, y = np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 3, 1, 2, 1, 1]), np.array(
        [0, 2, 1, 1, 0, 1]
    )  # fmt: skip
    table = tables(leaf, w, y)[kind]
    asked = y[:, None].astype(float) if kind == "moments" else y.astype(table[0].dtype)
    asked = y if kind == "classes" else asked
    own = Own(w, asked)
    seat = seats(table, table.node[leaf], own)
    assert seat.tolist() == [1, 1, 1, 2, 4, 4]  # the lonely row of leaf 1 asks its parent
    found = value_at(table, seat, own)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        rest = tables(leaf[others], w[others], y[others])[kind]
        expected = value_at(rest, seat[i : i + 1])
        np.testing.assert_allclose(found[i], expected[0], atol=1e-15)


def middles(y, w):
    """The two middle values of copies laid out in a row."""
    row = np.sort(np.repeat(y, w))
    return row[(len(row) - 1) // 2], row[len(row) // 2]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(-3, 3)), min_size=2))
def test_medians__are_the_middle_of_all_copies(rows):
    leaf, w, y = map(np.array, zip(*rows))
    table = value_table(SHAPE, leaf, w.astype(float), y.astype(float), True)
    inside = [np.isin(leaf, some) for some in ([0, 1, 2], [0], [1, 2], [1], [2])]
    filled = np.array([node for node in range(5) if inside[node].any()])
    places = median_places(table, filled)
    for k, node in enumerate(filled):
        found = [table.values[side[k]] for side in places]
        assert tuple(found) == middles(y[inside[node]], w[inside[node]])
    own = Own(w.astype(float), y.astype(float))
    seat = seats(table, table.node[leaf], own)
    if (table.weight[seat] == own.weight).any():
        return  # some row is alone in the whole tree
    places = median_places(table, seat, own)
    for i in range(len(y)):
        others = inside[seat[i]] & (np.arange(len(y)) != i)
        found = tuple(table.values[side[i]] for side in places)
        assert found == middles(y[others], w[others])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1), st.integers(0, 50))
def test_tables__of_blocks_add_to_the_table_of_all_rows(rows, cut):
    leaf, y = map(np.array, zip(*rows))
    part = [slice(None, cut % len(y)), slice(cut % len(y), None)]
    one, other = (class_table(SHAPE, leaf[p], np.ones(len(y))[p], y[p], 3, True) for p in part)
    whole = class_table(SHAPE, leaf, np.ones(len(y)), y, 3, True)
    np.testing.assert_array_equal(one.counts + other.counts, whole.counts)
    np.testing.assert_array_equal(one.weight + other.weight, whole.weight)
