"""Datasets come back as they were written, whatever the blocks; updates equal one writing."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from dforest.errors import DataError, SpecError, StoreError
from dforest.store import schema
from dforest.store.dataset import Dataset, DatasetWriter

POINTS = np.random.default_rng(0).normal(size=(23, 3)).astype(np.float32)
POINTS[4, 1] = np.nan
IDS = np.array([f"object {i}" for i in range(23)])
LABELS = np.array(["K", "P", "K", "I", "O"] * 5)[:23]
RESPONSE = np.arange(46.0).reshape(23, 2)


def write(path, cuts=(), points=POINTS, stop=23, start=0, labels=LABELS, **options):
    with DatasetWriter(path, **options) as writer:
        for rows in np.split(np.arange(start, stop), [cut for cut in cuts if start < cut < stop]):
            writer.write(points[rows], ids=IDS[rows], labels=labels[rows], response=RESPONSE[rows])
        writer.publish()
    return Dataset(path)


def check_equal(dataset, points=POINTS):
    read = dataset.points.read()
    read, points = (x.toarray() if sparse.issparse(x) else x for x in (read, points))
    np.testing.assert_array_equal(read, points)
    np.testing.assert_array_equal(dataset.ids, IDS)
    np.testing.assert_array_equal(dataset.labels, LABELS)
    np.testing.assert_array_equal(dataset.response, RESPONSE)


CUTS = st.lists(st.integers(1, 22), unique=True).map(sorted)
any_cuts = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@any_cuts
@given(cuts=CUTS, block_rows=st.integers(2, 30))
def test_dataset__comes_back_however_it_was_cut(tmp_path, cuts, block_rows):
    dataset = write(tmp_path / "d", cuts, block_rows=block_rows)
    check_equal(dataset)
    blocks = dataset.row_blocks()
    parts = [dataset.points.read(block.start, block.stop) for block in blocks]
    np.testing.assert_array_equal(np.concatenate(parts), POINTS)


@any_cuts
@given(cuts=CUTS, block_rows=st.integers(2, 30))
def test_sparse_points__stay_sparse(tmp_path, cuts, block_rows):
    points = sparse.random_array((23, 9), density=0.2, rng=0, dtype=np.float32).tocsr()
    dataset = write(tmp_path / "d", cuts, points, block_rows=block_rows)
    check_equal(dataset, points)
    assert dataset.points.is_sparse
    some = dataset.points.read(5, 17)
    assert some.has_sorted_indices
    assert (some != points[5:17]).nnz == 0
    assert (dataset.points.take([7, 3]) != points[[7, 3]]).nnz == 0


def test_fingerprint__does_not_depend_on_how_rows_came(tmp_path):
    for name, cuts in [("a", ()), ("b", (1, 2, 17))]:
        write(tmp_path / name, cuts, block_rows=5)
    write(tmp_path / "c", stop=13, block_rows=5)
    write(tmp_path / "c", start=13, update=True)
    a, b, c = (schema.fingerprint(tmp_path / name) for name in "abc")
    assert a == b == c


@pytest.mark.parametrize("first", [1, 9, 10, 22])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_update__equals_writing_at_once(tmp_path, first, is_sparse):
    points = sparse.csr_array(np.nan_to_num(POINTS)) if is_sparse else POINTS
    write(tmp_path / "d", points=points, stop=first, block_rows=5)
    before = Dataset(tmp_path / "d")
    after = write(tmp_path / "d", [15], points, start=first, update=True)
    check_equal(after, points)
    assert (before.n_rows, before.points.read().shape) == (first, (first, 3))  # undisturbed
    assert pickle.loads(pickle.dumps(before)).n_rows == first
    if first == 10 and not is_sparse:
        old, new = (tmp_path / "d" / v / "points/c/1/0" for v in ("v1", "v2"))
        assert os.path.samefile(old, new)  # full blocks are shared, not copied


def test_update__of_nothing_is_refused(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        DatasetWriter(tmp_path / "d", update=True)
    assert os.listdir(tmp_path) == []


def test_facts__are_there(tmp_path):
    names = ["a", "b", "c"]
    dataset = write(tmp_path / "d", feature_names=names, response_names=["u", "v"])
    assert dataset.feature_names == ("a", "b", "c")
    assert (dataset.n_rows, dataset.n_features) == (23, 3)
    assert dataset.facts["n_missing"] == 1
    assert dataset.facts["n_classes"] == 4
    assert dataset.points.dtype == np.float32


def test_plain_points__have_neither_ids_nor_labels(tmp_path):
    with DatasetWriter(tmp_path / "d", dtype="float64") as writer:
        writer.write(np.array([[1e300], [2]]))
        writer.publish()
    dataset = Dataset(tmp_path / "d")
    assert (dataset.ids, dataset.labels, dataset.response) == (None, None, None)
    assert dataset.points.read().tolist() == [[1e300], [2.0]]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([3, -1, 3]), [3, -1, 3]),
        (np.array([1.0, 0.0, 1.0]), [1, 0, 1]),
        (["01", "1", "1"], ["01", "1", "1"]),
        ([True, False, True], ["True", "False", "True"]),
        (np.array(["x", "y", "x"], object), ["x", "y", "x"]),
    ],
)
def test_labels__keep_their_kind(tmp_path, labels, expected):
    with DatasetWriter(tmp_path / "d") as writer:
        writer.write(np.zeros((3, 1)), labels=labels)
        writer.publish()
    assert Dataset(tmp_path / "d").labels.tolist() == expected


BAD = {
    "shape .5,.": {"points": np.zeros(5)},
    "must be numbers": {"points": np.array([["a"]])},
    r"no features": {"points": np.zeros((2, 0))},
    r"row 1, feature 0: 1e\+60 is beyond float32": {"points": np.array([[0.0], [1e60]])},
    "3 ids were given for 2 rows": {"points": np.zeros((2, 1)), "ids": ["a", "b", "c"]},
    "ids must be strings or whole": {"points": np.zeros((1, 1)), "ids": [0.5]},
    "labels must be": {"points": np.zeros((1, 1)), "labels": [0.5]},
    "response must be": {"points": np.zeros((1, 1)), "response": ["a"]},
}


@pytest.mark.parametrize("error", BAD)
def test_write__says_what_does_not_fit(tmp_path, error):
    with DatasetWriter(tmp_path / "d") as writer, pytest.raises(DataError, match=error):
        writer.write(**BAD[error])
    assert os.listdir(tmp_path) == []


def test_later_rows__must_fit_the_first(tmp_path):
    with DatasetWriter(tmp_path / "d") as writer:
        writer.write(np.zeros((2, 2)), ids=["a", "b"])
        with pytest.raises(DataError, match="row 2 has 3 features, the rows before it have 2"):
            writer.write(np.zeros((1, 3)), ids=["c"])
        with pytest.raises(DataError, match="'ids' must be given for all rows or for none"):
            writer.write(np.zeros((1, 2)))
        with pytest.raises(DataError, match="all dense or all sparse"):
            writer.write(sparse.csr_array(np.zeros((1, 2))), ids=["c"])
        writer.write(np.zeros((1, 2)), ids=["a"])
        with pytest.raises(DataError, match="id 'a' names rows 0 and 2"):
            writer.publish()


def test_an_empty_dataset__is_refused(tmp_path):
    with DatasetWriter(tmp_path / "d") as writer, pytest.raises(DataError, match="no rows"):
        writer.publish()
    with pytest.raises(SpecError, match="dtype must be"):
        DatasetWriter(tmp_path / "d", dtype="float16")
    with pytest.raises(DataError, match="1 feature names were given for 2"):
        DatasetWriter(tmp_path / "d", feature_names=["a"]).write(np.zeros((2, 2)))


def test_points__damaged_anywhere_are_named(tmp_path):
    dataset = write(tmp_path / "d", block_rows=5)
    (tmp_path / "d/v1/points/c/2/0").write_bytes(b"")
    (tmp_path / "d/v1/ids/c/4").unlink()
    assert dataset.points.read(0, 10).shape == (10, 3)
    with pytest.raises(StoreError, match=r"d/v1: array 'points', block \(2, 0\) is empty"):
        dataset.points.read(8, 12)
    with pytest.raises(StoreError, match=r"'ids', block \(4,\) is missing"):
        _ = dataset.ids
