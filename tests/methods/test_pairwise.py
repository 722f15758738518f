"""Matrices by tiles and by pieces: the same bits however they are cut, and the costs they have."""

import numpy as np
import pytest
from benchmarks.harness import in_fresh_process
from scipy import sparse

from dforest.distances.pairwise import measure_of
from dforest.methods import pairwise
from dforest.methods.pairwise import Sides
from dforest.run.here import Here


def points(n=50, p=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p)).round(1)


def whole(sides, name="euclidean", symmetric=None, tile=16, threads=1):
    measure = measure_of(name, n_features=6, symmetric=symmetric)
    layout = pairwise.layout_of(sides, measure, symmetric)
    return pairwise.in_memory(sides, measure, layout, Here(threads), tile)


@pytest.mark.parametrize("others", [None, points(33, seed=1)], ids=["one set", "two sets"])
@pytest.mark.parametrize("distance", ["correlation", lambda x, y: x[0] - 2 * y[1]])
def test_in_memory__has_the_same_bits_for_all_tiles_pieces_and_threads(
    others, distance, monkeypatch
):
    sides = Sides(points(), others)
    expected = whole(sides, distance, tile=1_000)
    for tile, piece_rows, threads in ((16, 100, 2), (64, 7, 1), (9, 1, 2), (1, 1, 1)):
        monkeypatch.setattr(pairwise, "PIECE_BYTES", 8 * 6 * piece_rows)
        found = whole(sides, distance, tile=tile, threads=threads)
        np.testing.assert_array_equal(found, expected)


def test_in_memory__takes_sparse_rows_piece_by_piece(monkeypatch):
    X, Y = points() * (points(seed=2) > 0.5), points(20, seed=3)
    X[:, 0] = 1
    expected = whole(Sides(X, Y))
    monkeypatch.setattr(pairwise, "PIECE_BYTES", 8 * 6 * 5)
    dense = []
    own = pairwise._dense
    monkeypatch.setattr(pairwise, "_dense", lambda *a: dense.append(own(*a)) or dense[-1])
    np.testing.assert_array_equal(whole(Sides(sparse.csr_array(X), Y)), expected)
    np.testing.assert_array_equal(whole(Sides(sparse.csr_array(X))), whole(Sides(X)))
    assert max(map(len, dense)) == 5


def test_a_symmetric_callable__is_called_once_a_pair_however_it_is_cut(monkeypatch):
    calls = []

    def apart(x, y):
        calls.append((x[0], y[0]))
        return abs(x[0] - y[0])

    X = np.arange(30.0)[:, None] * np.ones(6)
    for tile, piece_rows in ((7, 3), (100, 4), (30, 100)):
        monkeypatch.setattr(pairwise, "PIECE_BYTES", 8 * 6 * piece_rows)
        calls.clear()
        found = whole(Sides(X), apart, symmetric="upper", tile=tile)
        np.testing.assert_array_equal(found, abs(X[:, :1] - X[:, 0]))
        assert len(calls) == len({frozenset(pair) for pair in calls}) == 30 * 31 / 2


def test_sides__lie_flat_in_a_folder():
    for X in (points(), sparse.csr_array(points())):
        for others in (None, points(5)):
            sides = Sides(X, others)
            again = Sides.from_flat(*sides.flat())
            np.testing.assert_array_equal(whole(again), whole(sides))
            assert again.shape == sides.shape


def test_refuse_large__names_the_size_and_the_way_out(monkeypatch):
    monkeypatch.setattr(pairwise, "memory_bytes", lambda: 2 * 8 * 100 * 200)
    pairwise.refuse_large(100, 200)
    with pytest.raises(pairwise.SpecError, match=r"all 100 x 201 .* give out=PATH"):
        pairwise.refuse_large(100, 201)


@pytest.mark.parametrize("layout", ["upper", "full", "none"])
def test_cost__counts_what_is_done(layout, tmp_path):
    X, measure = points(50).astype(np.float32), measure_of("euclidean", n_features=6)
    said = pairwise.cost(50, 6, 4, layout, 16)
    parts = []
    runner = Here(1)
    run = runner.run
    runner.run = lambda job: parts.append(job) or run(job)
    path = tmp_path / "z"
    pairwise.to_store(Sides(X), measure, layout, path, runner, tile=16)
    assert said.tasks == parts[0].n_blocks
    files = [file for file in path.glob("v1/z/c/*/*") if file.is_file()]
    assert said.n_tiles == len(files)
    assert said.writes == {"upper": 4 * (50**2 + 3 * 16**2 + 2**2) / 2, "full": 4 * 50**2,
                           "none": 4 * 50**2}[layout]  # fmt: skip


def status(key):
    """Memory of this process in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


def grown(folder):
    """Bytes that computing a matrix adds at its peak, after a small one that compiles."""
    measure = measure_of("cosine", n_features=16)
    for n in (3, 2_500):
        X = np.random.default_rng(0).standard_normal((n, 16), dtype=np.float32)
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")  # forget the peak so far
        start = status("VmRSS")
        pairwise.to_store(Sides(X), measure, "upper", folder / str(n), Here(1), tile=1024)
    return status("VmHWM") - start


@pytest.mark.slow
def test_cost__memory_is_not_exceeded(tmp_path):
    said = pairwise.cost(2_500, 16, 64, "upper", 1024).memory
    assert 0.3 * said < in_fresh_process(grown, tmp_path)[0] < said
