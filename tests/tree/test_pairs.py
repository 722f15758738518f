"""Sums over trees: places, masks, and the order of additions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dforest.tree.pairs import GROUP, STRIP, add_group, place, seats
from tree import cases


@cases.some
@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.lists(st.booleans(), min_size=9))
def test_seats__number_the_cells_that_occur(leaf, splits):
    leaf, cell = np.array(leaf, np.int32), np.cumsum([0, *splits[:9]]).astype(np.int32)
    leaves, places = seats(leaf, cell)
    np.testing.assert_array_equal(cell[leaves[places - 1]], cell[leaf])
    np.testing.assert_array_equal(cell[leaves], np.unique(cell[leaf]))
    assert set(leaves) <= set(leaf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("strip", [STRIP, 1])
def test_add_group__adds_trees_in_their_order_where_they_may_answer(dtype, strip):
    rng, a, b, n, m = np.random.default_rng(0), 9, 300, 5, 6
    grids = rng.normal(size=(GROUP, n, 1 + m)).astype(dtype)
    grids[..., 0] = 0
    leaf, other = rng.integers(n, size=(GROUP, a)), rng.integers(m, size=(GROUP, b))
    may, might = rng.random((GROUP, a)) < 0.5, rng.random((GROUP, b)) < 0.5
    whole = (1 + other).astype(np.int32)
    masked = whole * might
    start = rng.normal(size=(a, b))
    room = np.empty((GROUP, 1 + 2 * n, strip), dtype)
    for rule in ("all", "both", "either"):
        n_whole, n_masked = (n * (rule != "both"), n * (rule != "all"))
        ones = 1 + leaf + (n * ~may if rule == "either" else 0)
        ones *= may if rule == "both" else 1
        total, expected = start.copy(), start.copy()
        add_group(
            grids, np.full(GROUP, n_whole), np.full(GROUP, n_masked), ones.astype(np.int32),
            whole, masked.astype(np.int32), room, total,
        )  # fmt: skip
        for g in range(GROUP):
            values = grids[g, leaf[g]][:, 1 + other[g]].astype(float)
            allowed = {
                "all": np.ones((a, b), bool),
                "both": may[g][:, None] & might[g],
                "either": may[g][:, None] | might[g],
            }[rule]
            expected[allowed] += values[allowed]
        np.testing.assert_array_equal(total, expected)


def test_place__writes_what_ix_writes():
    rng = np.random.default_rng(0)
    values, out, expected = rng.random((3, 4)), np.zeros((9, 9)), np.zeros((9, 9))
    rows, columns = np.array([5, 0, 7]), np.array([8, 1, 2, 0])
    expected[np.ix_(rows, columns)] = values
    place(out, rows, columns, values)
    np.testing.assert_array_equal(out, expected)
    expected[np.ix_(columns, rows)] = values.T
    place(out, columns, rows, values.T)
    np.testing.assert_array_equal(out, expected)
