"""Codes keep the order of values, and cut points lie between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from dforest.tree.binning import between, make_table
from tree import cases

floats = st.floats(allow_infinity=False, width=32)
features = arrays(np.float32, st.tuples(st.integers(1, 40), st.integers(1, 3)), elements=floats)


def rank(x):
    """Dense rank of the known values; the number of distinct ones where NaN."""
    return np.where(
        np.isnan(x), len(np.unique(x[~np.isnan(x)])), np.unique(x, return_inverse=True)[1]
    )


@cases.some
@given(features)
def test_make_table__exact_codes_are_dense_ranks_and_nan_comes_last(X):
    table = make_table(X)
    for j, column in enumerate(X.T.astype(float)):
        np.testing.assert_array_equal(table.codes[j], rank(column))
        here = slice(table.offsets[j], table.offsets[j + 1])
        known = np.unique(column[~np.isnan(column)])
        np.testing.assert_array_equal(table.low[here], known)
        np.testing.assert_array_equal(table.high[here], known)


@cases.some
@given(features, st.integers(2, 20))
def test_make_table__binned_codes_are_few_and_in_order(X, max_bins):
    table = make_table(X, max_bins=max_bins)
    assert table.codes.dtype == np.uint8
    for j, column in enumerate(X.T.astype(float)):
        begin, k = table.offsets[j], table.n_codes[j]
        unknown = np.isnan(column)
        assert k <= max_bins
        assert (table.codes[j][unknown] == k).all()
        for value, code in zip(column[~unknown], table.codes[j][~unknown], strict=True):
            assert table.low[begin + code] <= value <= table.high[begin + code]
        low, high = table.low[begin : begin + k], table.high[begin : begin + k]
        assert (high[:-1] < low[1:]).all()


def test_make_table__is_exact_where_distinct_values_are_few():
    X = np.random.default_rng(0).integers(0, 9, (300, 2)) / 3
    for mine, exact in zip(make_table(X, max_bins=9), make_table(X), strict=True):
        np.testing.assert_array_equal(mine, exact)


def test_make_table__bins_hold_about_equal_shares():
    X = np.random.default_rng(1).normal(size=(5000, 1)) ** 3
    shares = np.bincount(make_table(X, max_bins=10).codes[0]) / 5000
    np.testing.assert_allclose(shares, 0.1, atol=0.002)


def test_make_table__bins_of_many_rows_come_from_a_sample_and_hold_every_row():
    X = np.random.default_rng(2).normal(size=(250_000, 1))
    X[7] = 1e6  # not in the sample
    table = make_table(X, max_bins=8)
    assert np.bincount(table.codes[0]).tolist() == pytest.approx([31_250] * 8, rel=0.02)
    assert table.high[-1] == 1e6


@pytest.mark.parametrize(
    ("n_values", "dtype"), [(255, np.uint8), (256, np.uint16), (65_536, np.uint32)]
)
def test_make_table__codes_are_as_narrow_as_they_can_be(n_values, dtype):
    table = make_table(np.append(np.arange(float(n_values)), np.nan)[:, None])
    assert table.codes.dtype == dtype
    assert table.codes[0, -1] == n_values  # the code of NaN fits, too


def test_make_table__of_sparse_rows_is_that_of_the_same_dense_rows():
    X = np.random.default_rng(3).integers(-2, 3, (30, 4)) * 1.5
    dense = make_table(X, row_major=True, keep_values=True)
    for form in (sparse.csr_array(X), sparse.csr_matrix(X)):
        for mine, yours in zip(
            make_table(form, row_major=True, keep_values=True), dense, strict=True
        ):
            np.testing.assert_array_equal(mine, yours)
    np.testing.assert_array_equal(dense.by_row, dense.codes.T)
    np.testing.assert_array_equal(dense.values, X)


def test_make_table__a_column_of_nan_has_no_code_but_that_of_nan():
    table = make_table(np.full((4, 1), np.nan))
    assert table.n_codes.tolist() == [0]
    assert table.codes.tolist() == [[0, 0, 0, 0]]


@cases.some
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_between__parts_any_two_numbers(a, b):
    if a != b:
        a, b = min(a, b), max(a, b)
        assert a <= between(a, b) < b


@pytest.mark.parametrize("a", [1.9, 16_777_217.0, 1e-7, 5e-324, -1e308, 1.7e308])
def test_between__parts_neighbouring_floats(a):
    assert between(a, np.nextafter(a, np.inf)) == a
