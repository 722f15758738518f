"""y at the door: labels come back from their codes, numbers stay numbers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dforest.arrays import as_labels, as_response
from dforest.errors import DataError

LETTERS = st.characters(exclude_characters="\0")  # which numpy's own strings lose at their end
LABELS = st.one_of(
    st.lists(st.text(LETTERS, max_size=3), min_size=1),
    st.lists(st.integers(-5, 5), min_size=1),
    st.lists(st.booleans(), min_size=1),
)


@given(LABELS, st.booleans())
def test_as_labels__codes_give_the_labels_back(y, as_objects):
    codes, classes = as_labels(np.array(y, object) if as_objects else y, len(y))
    assert codes.dtype == np.int64
    assert classes.tolist() == sorted(set(np.array(y).tolist()))
    assert classes[codes].tolist() == np.array(y).tolist()


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pd.Categorical, np.array])
def test_as_labels__reads_every_container(make):
    codes, classes = as_labels(make(["b", "a", "b"]), 3)
    assert codes.tolist() == [1, 0, 1]
    assert list(classes) == ["a", "b"]


def test_as_labels__whole_floats_and_columns_are_labels():
    codes, classes = as_labels(np.array([[2.0], [1.0]]), 2)
    assert codes.tolist() == [1, 0]
    assert classes.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([0.5, 1.0, 2.0], "Unknown label type: continuous"),
        ([0.0, np.nan, 1.0], r"y\[1\] is missing"),
        (["a", None, "b"], r"y\[1\] is missing"),
        (pd.array([1, None, 2], "Int64"), r"y\[1\] is missing"),
        (np.array(["a", 1, "b"], object), "y mixes int and str"),
        (np.eye(3), r"y should be a 1d array of one label a row, got shape \(3, 3\)"),
        ([1, 2], "X has 3 rows, y has 2"),
        ([1j, 1, 0], "Complex data not supported"),
        (sparse.eye_array(3), "y is sparse"),
    ],
)
def test_as_labels__says_what_is_wrong(y, message):
    with pytest.raises(DataError, match=message):
        as_labels(y, 3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([0.5, np.inf, np.nan], r"NaN or infinity in 2 row\(s\), the first is row 1"),
        (["a", "b", "c"], "y holds text"),
        (np.zeros((3, 2, 2)), r"y must be \(n,\) or \(n, q\)"),
        (np.zeros((3, 0)), r"y must be \(n,\) or \(n, q\)"),
        ([1, 2], "X has 3 rows, y has 2"),
        ([1j, 1, 0], "Complex data not supported"),
        (pd.DataFrame({"a": [1, 2, 3], "b": list("xyz")}), "y column 'b'"),
    ],
)
def test_as_response__says_what_is_wrong(y, message):
    with pytest.raises(DataError, match=message):
        as_response(y, 3)


def test_as_response__is_a_matrix():
    assert as_response([1, 2], 2).tolist() == [[1.0], [2.0]]
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False]})
    assert as_response(frame, 2).tolist() == [[1.0, 1.0], [2.0, 0.0]]
    assert as_response(pl.Series([1.5, 2.5]), 2).tolist() == [[1.5], [2.5]]
    assert as_response(np.array([1, 2], object), 2).dtype == np.float64


@given(st.permutations(range(5)))
def test_as_labels_and_as_response__align_by_label(order):
    y = pd.Series([3, 1, 4, 1, 5], index=list("abcde"))
    labels = np.array(list("abcde"), object)[list(order)]
    by_hand = y.reindex(labels).tolist()
    assert as_response(y, 5, labels=labels)[:, 0].tolist() == by_hand
    assert as_response(y.to_frame(), 5, labels=labels)[:, 0].tolist() == by_hand
    codes, classes = as_labels(y, 5, labels=labels)
    assert classes[codes].tolist() == by_hand
    assert as_response(y.to_numpy(), 5, labels=labels)[:, 0].tolist() == y.tolist()


def test_as_labels__refuses_other_row_labels():
    y = pd.Series([1, 2], index=["a", "z"])
    with pytest.raises(
        DataError, match=r"X has the label 'b', y has not but 'z'; .*y.to_numpy\(\)"
    ):
        as_labels(y, 2, labels=np.array(["a", "b"]))
