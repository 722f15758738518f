"""Sums on a grid."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dforest.tree.leaves.verbs import grid_scale, leaf_sums, node_sums
from tree import cases


@cases.some
@given(st.floats(1e-40, 1e40), st.floats(1, 1e12))
def test_grid_scale__lets_the_largest_sums_fit(largest, n_terms):
    scale = grid_scale(largest, n_terms)
    assert np.log2(scale) == int(np.log2(scale))
    assert (largest * scale + 1) * n_terms < 2.0**63
    assert largest * scale * n_terms > 2.0**57 or scale >= 2.0**100


def test_node_sums__add_up_the_leaves_below():
    first, stop = np.array([0, 0, 1, 1, 2]), np.array([3, 1, 3, 2, 3])
    sums = np.array([[1.0, 2], [3, 4], [5, 6]])
    expected = [[9, 12], [1, 2], [8, 10], [3, 4], [5, 6]]
    np.testing.assert_array_equal(node_sums(sums, first, stop), expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_leaf_sums__add_up_in_any_blocks(dtype):
    rng = np.random.default_rng(0)
    leaf, values = rng.integers(0, 5, 100).astype(np.int32), rng.integers(0, 99, 100).astype(dtype)
    whole = leaf_sums(leaf, values, 5)
    np.testing.assert_array_equal(whole, np.bincount(leaf, values, 5))
    blocks = [leaf_sums(leaf[i : i + 30], values[i : i + 30], 5) for i in range(0, 100, 30)]
    np.testing.assert_array_equal(whole, sum(blocks))
