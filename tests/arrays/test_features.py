"""X at the door: what is accepted stays what it was, what is refused says why."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from dforest.arrays import as_features
from dforest.errors import DataError


@pytest.mark.parametrize("index", [-1, 3, 70_000_000])
def test_as_features__refuses_a_sparse_matrix_that_points_outside(index):
    parts = np.ones(2), np.array([0, index]), np.array([0, 1, 2])
    with pytest.raises(DataError, match=f"row 1 has column {index}, but columns are 0 to 2"):
        as_features(sparse.csr_array(parts, shape=(2, 3)))


REAL = (np.float16, np.float64, np.int8, np.uint64, np.bool_, ">f8", np.longdouble)


@given(
    hnp.arrays(
        st.sampled_from([np.float16, np.float32, np.float64, np.int16, np.bool_]),
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements={"allow_infinity": False},
    )
)
def test_as_features__keeps_every_value(X):
    values = as_features(X).values
    assert values.dtype == (np.float32 if X.dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(values, X)


@pytest.mark.parametrize("dtype", REAL)
def test_as_features__makes_float64_of_every_other_number(dtype):
    values = as_features(np.ones((2, 3), dtype)).values
    assert values.dtype == np.float64
    assert values.dtype.isnative


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_features__does_not_copy_without_need(dtype):
    X = np.ones((4, 3), dtype)
    X.flags.writeable = False
    assert np.shares_memory(as_features(X).values, X)
    assert not np.shares_memory(as_features(np.asfortranarray(X)).values, X)


def test_as_features__reads_big_endian_float32_as_float32():
    values = as_features(np.array([[1.5, 2.5]], ">f4")).values
    assert values.dtype == np.float32
    assert values.tolist() == [[1.5, 2.5]]


def containers(X, folder):
    yield X.tolist()
    yield np.asfortranarray(X)
    yield np.repeat(X, 2, axis=0)[::2]
    yield pd.DataFrame(X)
    yield pl.DataFrame(X)
    yield da.from_array(X, chunks=2)
    stored = zarr.create_array(folder / "x.zarr", shape=X.shape, dtype=X.dtype, chunks=(2, 2))
    stored[:] = X
    yield stored
    np.save(folder / "x.npy", X)
    yield np.load(folder / "x.npy", mmap_mode="r")
    yield X.astype(object)


def test_as_features__reads_every_container(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    X[1, 2] = np.nan
    for container in containers(X, tmp_path):
        values = as_features(container).values
        assert values.flags.c_contiguous
        assert type(values) is np.ndarray
        np.testing.assert_array_equal(values, X)


def test_as_features__reads_sparse_without_changing_it():
    coo = sparse.coo_matrix(([1, 2, 3], ([0, 0, 1], [1, 1, 0])), shape=(2, 3))
    values = as_features(coo).values
    assert values.format == "csr"
    assert values.has_canonical_format
    assert values.toarray().tolist() == [[0, 3, 0], [3, 0, 0]]
    messy = sparse.csr_matrix((np.ones(2), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    before = messy.indices.copy()
    assert as_features(messy).values.has_sorted_indices
    np.testing.assert_array_equal(messy.indices, before)
    single = as_features(sparse.csr_array(np.eye(2, dtype=np.float32))).values
    assert single.dtype == np.float32


def test_as_features__takes_names_and_labels_of_a_frame():
    frame = pd.DataFrame({"a": [1, 2], "b": [0.5, None]}, index=["u", "v"])
    found = as_features(frame)
    assert found.names == ("a", "b")
    assert found.labels.tolist() == ["u", "v"]
    assert np.isnan(found.values[1, 1])
    assert as_features(pl.DataFrame({"a": [1, None]})).labels is None
    assert as_features(np.eye(2)).names is None
    assert as_features(pd.DataFrame(np.eye(2))).names is None  # columns 0, 1 are no names


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan])
def test_as_features__reads_mixed_columns_and_missing_values(missing):
    frame = pd.DataFrame({"whole": pd.array([1, 2], "Int64"), "yes": [True, False]})
    frame["rare"] = pd.Series([missing, 3.5], dtype=object)
    np.testing.assert_array_equal(as_features(frame).values, [[1, 1, np.nan], [2, 0, 3.5]])
    nullable = pd.DataFrame({"whole": pd.array([1, None], "Int64")})
    np.testing.assert_array_equal(as_features(nullable).values, [[1], [np.nan]])


def test_as_features__reads_masked_values_as_unknown():
    X = np.ma.masked_equal(np.array([[1, -9], [3, 4]]), -9)
    np.testing.assert_array_equal(as_features(X).values, [[1, np.nan], [3, 4]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], r"got shape \(2,\). Reshape your data"),
        (np.zeros((2, 2, 2)), "2 dimensions"),
        (3.0, r"got shape \(\)"),
        (
            np.zeros((12, 0)),
            r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required.",
        ),
        (np.zeros((0, 3)), r"0 row\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."),
        (np.ones((2, 2), complex), "Complex data not supported: X is complex128"),
        ([["a", "b"]], "X holds text"),
        (np.array([["1", 2]], object), r"X\[0, 0\] is no number: '1' is text"),
        (np.zeros((1, 1), "M8[s]"), "X holds dates"),
        ([[1, 2], [3]], "give every row the same length"),
        ("data.zarr", "X is the path 'data.zarr', not an array"),
        (
            pd.DataFrame({"a": [1], "kind": ["x"]}),
            r"X column 'kind'\[0\] is no number: 'x' is text",
        ),
        (pl.DataFrame({"a": [1], "kind": ["x"]}), "X column 'kind'"),
        (pd.DataFrame([[1, 2]], columns=["a", 5]), "column names of mixed types: 5 is a int"),
        ([[1.0, 0.0], [0.0, -np.inf]], r"X\[1, 1\] is -inf; .* use NaN"),
        (sparse.csr_array([[0.0, 0.0], [0.0, np.inf]]), r"X\[1, 1\] is inf"),
        (sparse.coo_array(np.ones(3)), "Reshape your data"),
    ],
)
def test_as_features__says_what_is_wrong(X, message):
    with pytest.raises(DataError, match=message) as caught:
        as_features(X)
    assert "\n" not in str(caught.value)


def test_as_features__an_object_that_is_no_number_is_a_type_error_too():
    with pytest.raises(TypeError, match="argument must be .* string.* number") as caught:
        as_features(np.array([[{"foo": "bar"}, 1.0]], object))
    assert isinstance(caught.value, DataError)


def test_as_features__lets_queries_be_infinite():
    assert as_features([[np.inf]], finite=False).values[0, 0] == np.inf


def test_as_features__compares_the_width_with_the_fitted_one():
    with pytest.raises(DataError, match="^X has 3 features, but this model was fitted on 4$"):
        as_features(np.eye(3), n_features=4)
    with pytest.raises(DataError, match="Q has 3 features, but Forest is expecting 4 features as"):
        as_features(np.eye(3), what="Q", n_features=4, model="Forest")
    assert as_features(np.eye(3), n_features=3).values.shape == (3, 3)


def test_as_features__refuses_other_names_in_scikit_learns_words():
    head = "The feature names should match those that were passed during fit.\n"
    cases = {
        ("b", "a"): "Feature names must be in the same order as they were in fit.\n",
        ("a", "c"): "Feature names unseen at fit time:\n- c\n"
        "Feature names seen at fit time, yet now missing:\n- b\n",
        ("a",): "Feature names seen at fit time, yet now missing:\n- b\n",
    }
    for names, tail in cases.items():
        frame = pd.DataFrame(np.ones((1, len(names))), columns=list(names))
        with pytest.raises(DataError) as caught:
            as_features(frame, feature_names=("a", "b"), n_features=2)
        assert str(caught.value) == head + tail


def test_as_features__warns_where_names_got_lost():
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Forest was"):
        as_features(np.ones((1, 2)), feature_names=("a", "b"), model="Forest")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = pd.DataFrame(np.ones((1, 2)), columns=["a", "b"])
        as_features(frame, feature_names=np.array(["a", "b"], object))
