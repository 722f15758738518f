"""The public door: what goes in, what comes out, and how a stopped run goes on."""

import functools
import threading

import naive
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse
from small_forests import example, forest_of, points

import dforest as df
from dforest.errors import DataError, NotFittedError, RunError, SpecError
from dforest.methods import pairwise, tiles
from dforest.store.dataset import DatasetWriter
from dforest.store.matrix import MatrixWriter


def ahead(x, y):
    """How far x is ahead of y."""
    return max(x[0] - y[0], 0.0)


@pytest.fixture(scope="module")
def client():
    """A worker of two threads in this process."""
    with Client(processes=False, n_workers=1, threads_per_worker=2,
                dashboard_address="127.0.0.1:0", set_as_default=False) as client:  # fmt: skip
        yield client


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Scratch folder that must be empty in the end."""
    monkeypatch.setenv("DFOREST_SCRATCH", str(tmp_path / "scratch"))
    yield
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.fixture
def flowers(tmp_path):
    """Path of a dataset of 20 rows with ids."""
    with DatasetWriter(tmp_path / "flowers", feature_names=["a", "b", "c"]) as writer:
        writer.write(points(20), ids=[f"flower {i}" for i in range(20)])
        writer.publish()
    return tmp_path / "flowers"


def test_pairwise_distances__takes_what_holds_numbers(flowers):
    X = points(20).astype(np.float32)
    expected = [
        [naive.VECTORS["manhattan"](x, y) for y in X.astype(float)] for x in X.astype(float)
    ]
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for A in (X, X.tolist(), frame, sparse.csr_array(X), flowers, str(flowers)):
        found = df.pairwise_distances(A, distance="manhattan")
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        assert found.dtype == np.float64
    two = df.pairwise_distances(frame[:5], flowers, "manhattan")
    np.testing.assert_array_equal(two, df.pairwise_distances(X, distance="manhattan")[:5])


@pytest.mark.parametrize("layout", [None, "upper", "full"])
def test_out__stores_what_memory_holds_as_float32(layout, tmp_path, flowers):
    whole = df.pairwise_distances(flowers, distance="cosine")
    stored = df.pairwise_distances(
        flowers, distance="cosine", out=tmp_path / "z", symmetric=layout, tile=7
    )
    assert isinstance(stored, df.MatrixStore)
    assert (stored.symmetric, stored.tile, stored.shape) == (layout or "upper", 7, (20, 20))
    np.testing.assert_array_equal(stored[:, :], whole.astype(np.float32))
    assert stored.ids.tolist() == [f"flower {i}" for i in range(20)]
    assert stored.largest == whole.astype(np.float32).max()
    assert df.pairwise_distances(points(4), out=tmp_path / "other").ids is None


def test_out__of_two_sets_has_no_symmetry(tmp_path):
    A, B = points(20), points(9, seed=1)
    stored = df.pairwise_distances(A, B, "chebyshev", out=tmp_path / "z", tile=8)
    assert (stored.symmetric, stored.shape) == ("none", (20, 9))
    expected = df.pairwise_distances(A, B, "chebyshev").astype(np.float32)
    np.testing.assert_array_equal(stored[:, :], expected)
    with pytest.raises(SpecError, match="symmetric='full' is for the distances of one set"):
        df.pairwise_distances(A, B, symmetric="full")


def test_a_callable__is_computed_in_full_unless_declared_symmetric(tmp_path):
    X = points(20)
    expected = np.maximum(X[:, :1] - X[:, 0], 0)
    np.testing.assert_array_equal(df.pairwise_distances(X, distance=ahead), expected)
    stored = df.pairwise_distances(X, distance=ahead, out=tmp_path / "z", tile=8)
    assert stored.symmetric == "none"
    np.testing.assert_array_equal(stored[:, :], expected.astype(np.float32))
    said = df.pairwise_distances(X, distance=ahead, out=tmp_path / "u", tile=8, symmetric="upper")
    assert said.symmetric == "upper"
    upper = np.triu_indices(20)
    np.testing.assert_array_equal(said[:, :][upper], expected.astype(np.float32)[upper])
    np.testing.assert_array_equal(said[:, :], said[:, :].T)


def test_a_callable__may_leave_distances_unknown(tmp_path):
    X = np.array([[0.0], [np.nan], [2.0]])
    z = df.pairwise_distances(X, distance=lambda x, y: abs(x - y), out=tmp_path / "z")
    assert z.has_unknown
    np.testing.assert_array_equal(z[:, :], [[0, np.nan, 2], [np.nan] * 3, [2, np.nan, 0]])


def test_a_forest__answers_as_its_pairwise_does(tmp_path):
    X = points()
    forest = forest_of().fit(X, example("precomputed", X)[0])
    expected = forest.pairwise(X, X[:5])
    np.testing.assert_array_equal(df.pairwise_distances(X, X[:5], forest), expected)
    whole = forest.pairwise(X).astype(np.float32)
    stored = df.pairwise_distances(X, distance=forest, out=tmp_path / "z", symmetric="full", tile=9)
    np.testing.assert_array_equal(stored[:, :], whole)
    assert (stored.symmetric, stored.tile) == ("full", 9)
    np.testing.assert_array_equal(forest.pairwise(X, out=tmp_path / "y")[:, :], whole)
    with pytest.raises(SpecError, match="options p are for named distances"):
        df.pairwise_distances(X, distance=forest, p=2)
    with pytest.raises(NotFittedError):
        df.pairwise_distances(X, distance=df.DistanceForest())


def test_a_stored_matrix__is_what_a_forest_learns_from(tmp_path, flowers):
    stored = df.pairwise_distances(flowers, out=tmp_path / "z", tile=8)
    forest = df.DistanceForest(n_estimators=2, random_state=0).fit(flowers, stored)
    assert forest.pairwise(flowers).shape == (20, 20)


# Refusals ----------------------------------------------------------------------------------------


def test_refusals__come_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(pairwise, "sweep", lambda *_: pytest.fail("work began"))
    bad, out = points(20), {"out": tmp_path / "z"}
    bad[13, 2] = np.nan
    for options in ({}, out):
        with pytest.raises(DataError, match=r"A\[13, 2\] is nan"):
            df.pairwise_distances(bad, **options)
        with pytest.raises(DataError, match=r"B\[13, 2\] is nan"):
            df.pairwise_distances(points(), bad, **options)
        with pytest.raises(DataError, match=r"A\[1\] is all zeros"):
            df.pairwise_distances([[1, 1], [0, 0]], distance="cosine", **options)
    with pytest.raises(DataError, match="A has 3 features, B has 2"):
        df.pairwise_distances(points(), points(p=2))
    frames = [pd.DataFrame(points(), columns=list(names)) for names in ("abc", "acb")]
    with pytest.raises(DataError, match="feature 1 is 'b' in A, but 'c' in B"):
        df.pairwise_distances(*frames)
    with pytest.raises(SpecError, match="symmetric='lower' is unknown; give None, 'upper' or"):
        df.pairwise_distances(points(), symmetric="lower")
    with pytest.raises(SpecError, match="tile=0 is out of range"):
        df.pairwise_distances(points(), tile=0)
    monkeypatch.setattr(pairwise, "memory_bytes", lambda: 16 * 40**2 - 1)
    with pytest.raises(SpecError, match=r"all 40 x 40 distances take .* give out=PATH"):
        df.pairwise_distances(points())
    assert list(tmp_path.iterdir()) == []


def test_an_error_in_a_callable__leaves_no_store(tmp_path):
    with pytest.raises(DataError, match=r"distance\(A\[0\], A\[3\]\) raised ValueError: no way"):
        df.pairwise_distances(points(5), distance=fails_at_3, out=tmp_path / "z", n_jobs=1)
    assert list(tmp_path.iterdir()) == []


def fails_at_3(x, y):
    if (y == points(5)[3]).all():
        raise ValueError("no way")
    return 0.0


def test_distances_beyond_float32__are_refused_by_a_store(tmp_path):
    X = [[0.0], [1e100]]
    assert df.pairwise_distances(X)[0, 1] == 1e100
    with pytest.raises(DataError, match=r"distance \(0, 1\) is infinite"):
        df.pairwise_distances(X, out=tmp_path / "z")


# Stopped and begun again ------------------------------------------------------------------------


@pytest.fixture
def stopped(monkeypatch):
    """Return a function that runs a call which is stopped before it publishes."""

    def stop(*args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(MatrixWriter, "publish", lambda *_: (_ for _ in ()).throw(RunError("k")))
            with pytest.raises(RunError):
                df.pairwise_distances(*args, **options)

    return stop


def test_a_stopped_run_of_a_forest__goes_on_where_it_stopped(tmp_path, stopped, monkeypatch):
    X, out = points(20), tmp_path / "z"
    forest = forest_of().fit(X, example("precomputed", X)[0])
    stopped(X, distance=forest, out=out, tile=8)
    monkeypatch.setattr(tiles, "_answer", lambda *_, **__: pytest.fail("done again"))
    stored = df.pairwise_distances(X, distance=forest, out=out, tile=8)
    np.testing.assert_array_equal(stored[:, :], forest.pairwise(X).astype(np.float32))


@pytest.mark.parametrize("distance", ["euclidean", "minkowski", ahead])
def test_a_stopped_run__goes_on_where_it_stopped(distance, tmp_path, stopped, monkeypatch):
    X, out = points(20), tmp_path / "z"
    expected = df.pairwise_distances(X, distance=distance).astype(np.float32)
    stopped(X, distance=distance, out=out, tile=8)
    monkeypatch.setattr(pairwise, "_tile", lambda *_, **__: pytest.fail("done again"))
    stored = df.pairwise_distances(X, distance=distance, out=out, tile=8)
    np.testing.assert_array_equal(stored[:, :], expected)


@pytest.mark.parametrize(
    "changed",
    [
        {"A": points(20) + 1e-12},
        {"A": points(20).astype(np.float32)},
        {"distance": "manhattan"},
        {"p": 3},
        {"w": [1, 1, 2]},
        {"tile": 9},
        {"symmetric": "full"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_work__starts_anew(changed, tmp_path, stopped, monkeypatch):
    first = {"A": points(20), "distance": "minkowski", "tile": 8, "out": tmp_path / "z"}
    stopped(**first)
    tiles, own = [], pairwise._tile
    monkeypatch.setattr(pairwise, "_tile", lambda *a, **k: tiles.append(a) or own(*a, **k))
    df.pairwise_distances(**{**first, **changed}, n_jobs=1)
    assert len(tiles) == 6


# On a cluster ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("distance", ["cosine", ahead, lambda x, y: float(x @ y)])
def test_on_workers__a_matrix_has_the_same_bits(distance, client, scratch, tmp_path):
    A, B = points(30), sparse.csr_array(points(11, seed=4))
    for others in (None, B):
        call = functools.partial(df.pairwise_distances, A, others, distance, tile=8)
        here, there = call(out=tmp_path / "here"), call(out=tmp_path / "there", client=client)
        np.testing.assert_array_equal(there[:, :], here[:, :])
        assert there.symmetric == here.symmetric


@pytest.mark.slow
def test_on_workers__a_forest_answers_with_the_same_bits(client, scratch, tmp_path, flowers):
    X = points(20)
    forest = forest_of().fit(X, example("precomputed", X)[0])
    expected = forest.pairwise(X).astype(np.float32)
    stored = df.pairwise_distances(
        flowers, distance=forest, out=tmp_path / "z", tile=8, client=client
    )
    np.testing.assert_array_equal(stored[:, :], expected)
    assert stored.ids[3] == "flower 3"
    other = forest.pairwise(flowers, X[:5], out=tmp_path / "other", client=client)
    np.testing.assert_array_equal(other[:, :], expected[:, :5])
    held = forest.oob_pairwise(out=tmp_path / "oob", client=client)
    np.testing.assert_array_equal(held[:, :], forest.oob_pairwise().astype(np.float32))


@pytest.mark.slow
def test_on_workers__an_error_in_a_callable_names_the_pair(client, scratch, tmp_path):
    with pytest.raises(DataError, match=r"distance\(A\[\d\], A\[3\]\) raised ValueError: no way"):
        df.pairwise_distances(points(5), distance=fails_at_3, out=tmp_path / "z", client=client)


@pytest.mark.slow
def test_on_workers__what_cannot_travel_is_refused(client, tmp_path):
    lock = threading.Lock()

    def held(x, y):
        return float(lock.locked())

    with pytest.raises(SpecError, match=r"distance held cannot be sent to workers \(TypeError"):
        df.pairwise_distances(points(5), distance=held, out=tmp_path / "z", client=client)
    assert (df.pairwise_distances(points(5), distance=held, client=client) == 0).all()
