"""Matrices by tiles: read as numpy would, written by owners, published only when whole."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dforest.errors import DataError, LockedError, SpecError, StoreError
from dforest.store.matrix import MatrixStore, MatrixWriter


def some_matrix(n, seed=0, unknown=0.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, n)).astype(np.float32)
    z[rng.random((n, n)) < unknown] = np.nan
    return np.triu(z) + np.triu(z, 1).T


def write(path, z, tile, symmetric="upper", **options):
    n = len(z) if symmetric != "none" else z.shape
    with MatrixWriter(path, n, tile, symmetric, **options) as writer:
        for a, b in writer.tiles():
            writer.write_tile(a, b, z[writer.span(a, b)])
        writer.publish()
    return MatrixStore(path)


KEYS = st.one_of(
    st.slices(11),
    st.integers(-11, 10),
    st.lists(st.integers(-11, 10), max_size=15),
    st.lists(st.booleans(), min_size=11, max_size=11).map(np.array),
)


def _key(key):
    return np.array(key, int) if isinstance(key, list) else key


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same matrix, stored in both ways."""
    folder, z = tmp_path_factory.mktemp("stores"), some_matrix(11, unknown=0.2)
    return z, [write(folder / way, z, 4, way) for way in ("upper", "full", "none")]


@settings(max_examples=60, deadline=None)
@given(rows=KEYS, columns=KEYS)
def test_getitem__selects_rows_and_columns_as_numpy_does(stores, rows, columns):
    z, both = stores
    for store in both:
        down, across = (np.atleast_1d(np.arange(11)[_key(key)]) for key in (rows, columns))
        wanted = z[np.ix_(down, across)]
        axes = tuple(k for k, key in enumerate((rows, columns)) if isinstance(key, int))
        np.testing.assert_array_equal(store[rows, columns], wanted.squeeze(axes))


def test_getitem__takes_rows_alone_and_is_an_array(stores):
    z, both = stores
    for store in both:
        np.testing.assert_array_equal(store[[3, 3, 9]], z[[3, 3, 9]])
        np.testing.assert_array_equal(np.asarray(store), z)
        np.testing.assert_array_equal(store[2, 5], z[2, 5])
        assert store.shape == (11, 11)


def test_facts__say_what_the_tiles_hold(stores, tmp_path):
    z, both = stores
    for store in both:
        assert store.has_unknown
        assert store.largest == np.nanmax(np.abs(z))
    whole = write(tmp_path / "z", some_matrix(5), 2, ids=[f"row {i}" for i in range(5)])
    assert not whole.has_unknown
    assert whole.ids.tolist() == [f"row {i}" for i in range(5)]


def test_read_tile__mirrors_where_only_upper_tiles_are_stored(stores):
    z, both = stores
    files = [len(list((store.path / "v1/z/c").glob("*/*"))) for store in both]
    assert files == [6, 9, 9]
    for store in both:
        for a in range(3):
            for b in range(3):
                np.testing.assert_array_equal(store.read_tile(a, b), z[store.span(a, b)])


def test_a_matrix_without_symmetry__may_be_oblong(tmp_path):
    z = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    store = write(tmp_path / "z", z, 3, "none")
    np.testing.assert_array_equal(store[:, :], z)
    assert (store.n_rows, store.n_columns) == (7, 5)


def test_store__works_from_threads_and_after_pickling(stores):
    z, both = stores
    for store in map(pickle.loads, map(pickle.dumps, both)):
        with ThreadPoolExecutor(8) as pool:
            for row, answer in enumerate(pool.map(lambda row: store[row, :], range(11))):  # noqa: B023
                np.testing.assert_array_equal(answer, z[row])


def test_a_hole__is_an_error_that_names_the_block(tmp_path):
    store = write(tmp_path / "z", some_matrix(6), 2)
    (tmp_path / "z/v1/z/c/0/2").unlink()
    with pytest.raises(StoreError, match=r"'z', block \(0, 2\) is missing"):
        store[5, 0]
    assert store[5, 2:].shape == (4,)


def test_publish__wants_every_tile(tmp_path):
    z = some_matrix(4)
    with MatrixWriter(tmp_path / "z", 4, 2) as writer:
        receipt = writer.write_tile(0, 0, z[:2, :2])
        assert receipt["block"] == [0, 0]
        with pytest.raises(
            StoreError, match=r"2 tiles have not been written, the first is \(0, 1\)"
        ):
            writer.publish([receipt])
    assert os.listdir(tmp_path) == []


def test_publish__finds_a_tile_that_was_lost_after_its_receipt(tmp_path):
    z = some_matrix(2)
    with MatrixWriter(tmp_path / "z", 2, 2) as writer:
        writer.write_tile(0, 0, z)
        (writer.folder / "z/c/0/0").write_bytes(b"")
        with pytest.raises(StoreError, match=r"block \(0, 0\) has 0 bytes, its receipt says"):
            writer.publish()


def test_copies__write_tiles_but_do_not_publish(tmp_path):
    z = some_matrix(6)
    with MatrixWriter(tmp_path / "z", 6, 2, "full") as writer:
        copy = pickle.loads(pickle.dumps(writer))
        receipts = [copy.write_tile(a, b, z[copy.span(a, b)]) for a, b in copy.tiles()]
        with pytest.raises(SpecError, match="only the process that made"):
            copy.publish()
        writer.publish(receipts)
    np.testing.assert_array_equal(MatrixStore(tmp_path / "z")[:, :], z)


def test_a_second_writer__is_locked_out(tmp_path):
    with MatrixWriter(tmp_path / "z", 2, 2), pytest.raises(LockedError, match="being written"):
        MatrixWriter(tmp_path / "z", 2, 2)


def test_resume__does_only_the_tiles_that_are_missing(tmp_path):
    z = some_matrix(6)
    first = MatrixWriter(tmp_path / "z", 6, 2, resume="dtw")
    first.write_tile(0, 1, z[:2, 2:4])
    first.close(keep=True)  # as when it is killed
    with MatrixWriter(tmp_path / "z", 6, 2, resume="dtw") as writer:
        assert (0, 1) not in writer.missing()
        assert len(writer.missing()) == 5
        np.testing.assert_array_equal(writer.read_tile(0, 1), z[:2, 2:4])
        for a, b in writer.missing():
            writer.write_tile(a, b, z[writer.span(a, b)])
        writer.publish()
    np.testing.assert_array_equal(MatrixStore(tmp_path / "z")[:, :], z)
    with MatrixWriter(tmp_path / "z", 6, 2, resume="other") as writer:
        assert len(writer.missing()) == 6
    assert os.listdir(tmp_path) == ["z"]


@pytest.mark.parametrize(
    ("tile", "error"),
    [
        (np.zeros((2, 3), np.float32), r"holds \(2, 2\) float32, got \(2, 3\)"),
        (np.zeros((2, 2)), "got .* float64"),
        (np.array([[0, 1], [1, np.inf]], np.float32), r"distance \(3, 3\) is infinite"),
        (np.array([[0, 1], [2, 0]], np.float32), r"z\[2, 3\] = 1 but z\[3, 2\] = 2"),
        (np.array([[0, 1], [np.nan, 0]], np.float32), r"z\[2, 3\] = 1 but z\[3, 2\] = nan"),
    ],
)
def test_write_tile__refuses_what_it_cannot_hold(tmp_path, tile, error):
    with MatrixWriter(tmp_path / "z", 4, 2) as writer, pytest.raises(DataError, match=error):
        writer.write_tile(1, 1, tile)


def test_write_tile__takes_upper_tiles_of_a_symmetric_matrix(tmp_path):
    with MatrixWriter(tmp_path / "z", 4, 2, "full") as writer:
        with pytest.raises(DataError, match="lies below the diagonal"):
            writer.write_tile(1, 0, np.zeros((2, 2), np.float32))
        with pytest.raises(DataError, match=r"no tile \(0, 2\)"):
            writer.write_tile(0, 2, np.zeros((2, 2), np.float32))


def test_diagonal_tiles__are_stored_exactly_symmetric(tmp_path):
    z = np.array([[0, 1], [np.nextafter(np.float32(1), np.float32(2)), 0]], np.float32)
    stored = write(tmp_path / "z", z, 2)[:, :]
    np.testing.assert_array_equal(stored, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n": 0}, "at least 1"),
        ({"n": 3, "tile": 0}, "at least 1"),
        ({"n": (3, 4)}, "not square"),
        ({"n": 3, "symmetric": "lower"}, "'upper', 'full' or 'none', got 'lower'"),
    ],
)
def test_writer__refuses_impossible_layouts(tmp_path, options, error):
    with pytest.raises(SpecError, match=error):
        MatrixWriter(tmp_path / "z", **options)


def test_ids__must_fit_and_differ(tmp_path):
    with pytest.raises(DataError, match="2 ids were given for 3 rows"):
        MatrixWriter(tmp_path / "z", 3, ids=["a", "b"])
    with pytest.raises(DataError, match="id 'a' names rows 0 and 2"):
        MatrixWriter(tmp_path / "z", 3, ids=["a", "b", "a"])
    assert os.listdir(tmp_path) == []


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(n=st.integers(1, 9), tile=st.integers(1, 10), way=st.sampled_from(["upper", "full"]))
def test_any_size_and_tile__gives_the_matrix_back(tmp_path, n, tile, way):
    z = some_matrix(n, seed=n, unknown=0.3)
    np.testing.assert_array_equal(write(tmp_path / "z", z, tile, way)[:, :], z)


def test_tiles__may_be_written_from_threads_and_in_any_order(tmp_path):
    z = some_matrix(20)
    with MatrixWriter(tmp_path / "z", 20, 3, "full") as writer, ThreadPoolExecutor(8) as pool:
        order = np.random.default_rng(0).permutation(list(writer.tiles())).tolist()
        list(pool.map(lambda ab: writer.write_tile(*ab, z[writer.span(*ab)]), order))
        writer.publish()
    np.testing.assert_array_equal(MatrixStore(tmp_path / "z")[:, :], z)
