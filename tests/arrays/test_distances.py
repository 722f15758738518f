"""Z at the door: any container, the same numbers; a bad matrix is named by its worst place."""

import tracemalloc

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from dforest.arrays import as_distances, as_features
from dforest.errors import DataError


@pytest.mark.parametrize("size", [1e-31, 1e-46, 1e-300, 5e-324])
def test_as_distances__refuses_what_float32_would_round_away(size):
    with pytest.raises(DataError, match="coarse below 1e-30; rescale Z"):
        as_distances(np.array([[0.0, size], [size, 0.0]]), 2)


def symmetric(n, seed=0):
    z = np.random.default_rng(seed).normal(size=(n, n))
    return ((z + z.T) / 2).astype(np.float32)


def test_as_distances__does_not_copy_what_is_ready():
    z = symmetric(40)
    z.flags.writeable = False
    found = as_distances(z, 40)
    assert np.shares_memory(found.z, z)
    assert found.largest == np.abs(z).max()
    assert found.has_unknown is False


def containers(z, folder):
    yield z.astype(np.float64)
    yield z.astype(">f4")
    yield np.asfortranarray(z)
    yield np.repeat(np.repeat(z, 2, 0), 3, 1)[::2, ::3]
    yield z.tolist()
    yield pd.DataFrame(z)
    yield pl.DataFrame(z)
    yield da.from_array(z, chunks=7)
    yield z.astype(object)
    stored = zarr.create_array(folder / "z.zarr", shape=z.shape, dtype=z.dtype, chunks=(7, 9))
    stored[:] = z
    yield stored
    np.save(folder / "z.npy", z)
    yield np.load(folder / "z.npy", mmap_mode="r")


def test_as_distances__reads_every_container(tmp_path):
    z = symmetric(30)
    z[2, 5] = z[5, 2] = np.nan
    for container in containers(z, tmp_path):
        found = as_distances(container, 30)
        assert type(found.z) is np.ndarray
        assert found.z.dtype == np.float32
        assert found.z.flags.c_contiguous
        assert found.has_unknown
        assert found.largest == np.nanmax(np.abs(z))
        np.testing.assert_array_equal(found.z, z)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.longdouble])
def test_as_distances__reads_every_real_dtype(dtype):
    z = (symmetric(300, 1) > 0).astype(dtype) * np.array(1, dtype)
    found = as_distances(z, 300)
    np.testing.assert_array_equal(found.z, z.astype(np.float32))
    assert found.largest == 1.0


def test_as_distances__float16_whose_sums_overflow():
    z = np.full((100, 100), 60_000, np.float16)
    assert as_distances(z, 100).largest == np.float32(np.float16(60_000))


def test_as_distances__any_sign_and_diagonal():
    z = np.array([[-3.0, 1.0], [1.0, 0.03]])
    found = as_distances(z, 2)
    assert found.z.tolist() == z.astype(np.float32).tolist()
    assert found.largest == 3.0
    assert as_distances([[0]], 1).largest == 0.0


def test_as_distances__one_row_may_be_unknown_but_not_all():
    z = symmetric(60, 2)
    z[7] = z[:, 7] = np.nan
    assert as_distances(z, 60).has_unknown
    with pytest.raises(DataError, match="NaN everywhere"):
        as_distances(np.full((3, 3), np.nan), 3)


def test_as_distances__masked_is_unknown():
    z = np.ma.masked_greater(np.array([[0, 9, 1], [9, 0, 2], [1, 2, 0]]), 5)
    found = as_distances(z, 3).z
    np.testing.assert_array_equal(found, [[0, np.nan, 1], [np.nan, 0, 2], [1, 2, 0]])


@pytest.mark.parametrize(
    ("Z", "n", "message"),
    [
        (np.zeros((99, 100)), 100, r"X has 100 rows, Z is \(99, 100\): Z must be \(100, 100\)"),
        (np.zeros((101, 101)), 100, r"X has 100 rows, Z is \(101, 101\)"),
        (np.zeros(7), 5, r"X has 5 rows, Z is \(7,\)"),
        (pdist(np.eye(5)), 5, r"condensed form of 5 rows; .*scipy.spatial.distance.squareform"),
        (np.zeros((2, 2, 2)), 2, r"Z is \(2, 2, 2\)"),
        ([[0, 1], [1]], 2, "same length"),
        (np.zeros((2, 2), complex), 2, "Complex data not supported"),
        ([["0", "1"], ["1", "0"]], 2, "Z holds text"),
        (np.array([[0, 1], ["a", 0]], object), 2, r"Z\[1, 0\] is no number: 'a'"),
        ([[0, np.inf], [np.inf, 0]], 2, r"Z\[0, 1\] is inf; .* use NaN where one is unknown"),
        ([[0, -1e39], [-1e39, 0]], 2, r"Z\[0, 1\] is -1e\+39, beyond float32's 3.4e38; rescale"),
        ([[0, np.nan], [1, 0]], 2, r"Z\[0, 1\] is nan but Z\[1, 0\] is 1; fill in .*np.where"),
        (sparse.eye_array(2), 2, r"Z is sparse.*Graph\(weights\)"),
        ("z.zarr", 5, "Z is the path"),
        (None, 5, r"Z is \(\)"),
    ],
)
def test_as_distances__says_what_is_wrong(Z, n, message):
    with pytest.raises(DataError, match=message) as caught:
        as_distances(Z, n)
    assert "\n" not in str(caught.value)


def test_as_distances__names_the_worst_pair_wherever_it_is():
    z = symmetric(600, 3).astype(np.float64)
    z[3, 400] += 1.0
    z[590, 17] = 50.0
    message = rf"Z\[17, 590\] is {z[17, 590]:g} but Z\[590, 17\] is 50, .*\(Z \+ Z.T\) / 2"
    with pytest.raises(DataError, match=message):
        as_distances(z, 600)
    repaired = as_distances((z + z.T) / 2, 600).z
    np.testing.assert_array_equal(repaired, repaired.T)


@given(st.integers(2, 30), st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_as_distances__worst_pair_is_that_of_the_definition(n, seed, scale):
    z = np.random.default_rng(seed).normal(size=(n, n)) * scale
    z = z.astype(np.float32)
    gap = np.abs(z.astype(np.float64) - z.T)
    i, j = sorted(np.unravel_index(np.argmax(gap), gap.shape))
    with pytest.raises(DataError, match=rf"Z\[{i}, {j}\] is .* but Z\[{j}, {i}\] is"):
        as_distances(z, n)


def test_as_distances__allows_rounding_but_no_more():
    z = symmetric(20, 4)
    rounded = z.copy()
    rounded[3, 8] += 0.9e-5 * np.abs(z).max()
    as_distances(rounded, 20)
    rounded[3, 8] += 0.3e-5 * np.abs(z).max()
    with pytest.raises(DataError, match="not symmetric"):
        as_distances(rounded, 20)
    half = z.astype(np.float16)
    half[3, 8] = np.nextafter(half[3, 8], np.float16(9))
    as_distances(half, 20)


def test_as_distances__zero_and_minus_zero_are_the_same_distance():
    as_distances(np.array([[0.0, -0.0], [0.0, 0.0]], np.float32), 2)


def test_as_distances__takes_no_second_matrix():
    z = symmetric(1200, 5)
    z[0, 0] = np.nan
    tracemalloc.start()
    try:
        as_distances(z, 1200)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < z.nbytes / 2


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_as_distances__aligning_by_label_is_reindexing_by_hand(rows, columns):
    z = symmetric(6, 6)
    labels = np.array(list("uvwxyz"))
    shuffled = pd.DataFrame(z, labels, labels).iloc[list(rows), list(columns)]
    np.testing.assert_array_equal(as_distances(shuffled, 6, labels=labels).z, z)
    np.testing.assert_array_equal(  # without labels of X, rows go by position
        as_distances(shuffled, 6).z, shuffled.loc[shuffled.index, shuffled.index]
    )


@given(st.permutations(range(6)))
def test_as_distances__labels_of_x_are_those_of_the_frame(rows):
    frame = pd.DataFrame({"a": np.arange(6.0)})
    z = pd.DataFrame(abs(frame.to_numpy() - frame.to_numpy().T))
    X = as_features(frame.iloc[list(rows)])
    found = as_distances(z, 6, labels=X.labels).z
    np.testing.assert_array_equal(found, abs(X.values - X.values.T))


def test_as_distances__reads_labels_that_a_csv_file_made_text(tmp_path):
    z = pd.DataFrame(symmetric(3, 7).astype(float), [30, 10, 20], [30, 10, 20])
    z.to_csv(tmp_path / "z.csv")
    read = pd.read_csv(tmp_path / "z.csv", index_col=0)
    assert read.columns.tolist() == ["30", "10", "20"]
    found = as_distances(read, 3, labels=np.array([10, 20, 30])).z
    np.testing.assert_allclose(found, z.loc[[10, 20, 30], [10, 20, 30]], rtol=1e-6)


@pytest.mark.parametrize(
    ("index", "columns", "message"),
    [
        ("abz", "abz", r"X has the label 'c', Z.index has not but 'z'; .*Z.to_numpy\(\)"),
        ("abc", "abz", r"X has the label 'c', Z.columns has not but 'z'; .*Z.to_numpy\(\)"),
        ("abb", "abb", "X has the label 'c', Z.index has not; give"),
        (range(3), range(3), "X has the label 'a', Z.index has not but '0'"),
    ],
)
def test_as_distances__refuses_other_labels(index, columns, message):
    z = pd.DataFrame(symmetric(3), list(index), list(columns))
    with pytest.raises(DataError, match=message):
        as_distances(z, 3, labels=np.array(["a", "b", "c"], object))


def test_as_distances__refuses_labels_that_are_not_unique_unless_in_order():
    z = pd.DataFrame(symmetric(3), list("abb"), list("abb"))
    twice = np.array(["a", "b", "b"])
    np.testing.assert_array_equal(as_distances(z, 3, labels=twice).z, z)
    with pytest.raises(DataError, match="3 rows but 2 different labels"):
        as_distances(z, 3, labels=twice[::-1])


def test_as_distances__names_an_asymmetric_pair_by_its_labels():
    z = pd.DataFrame([[0.0, 1.0], [3.0, 0.0]], ["a", "b"], ["a", "b"])
    with pytest.raises(DataError, match=r"Z.loc\['a', 'b'\] is 1 but Z.loc\['b', 'a'\] is 3"):
        as_distances(z, 2)
    endless = pd.DataFrame([[0.0, np.inf], [np.inf, 0.0]], ["b", "a"], ["b", "a"])
    with pytest.raises(DataError, match=r"Z.loc\['a', 'b'\] is inf"):
        as_distances(endless, 2, labels=np.array(["a", "b"]))


def test_as_distances__several_bands_equal_one(monkeypatch, tmp_path):
    z = squareform(pdist(np.random.default_rng(0).normal(size=(50, 2)))).astype(np.float32)
    whole = as_distances(z, 50)
    monkeypatch.setattr("dforest.arrays.distances.BLOCK_BYTES", 8 * 50 * 3)
    monkeypatch.setattr("dforest.arrays.distances.TILE", 7)
    for container in containers(z, tmp_path):
        found = as_distances(container, 50)
        np.testing.assert_array_equal(found.z, whole.z)
        assert found[1:] == whole[1:]
