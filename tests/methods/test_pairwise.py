"""Matrices by tiles and by pieces: the same bits however they are cut, and the costs they have."""

import subprocess
import sys

import numpy as np
import pytest
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


PEAK = """
import resource, sys
import numpy as np
import psutil
from dforest.distances.pairwise import measure_of
from dforest.methods import pairwise
from dforest.methods.pairwise import Sides
from dforest.run.here import Here

def write(n, path):
    X = np.random.default_rng(0).standard_normal((n, 16), dtype=np.float32)
    measure = measure_of("cosine", n_features=16)
    pairwise.to_store(Sides(X), measure, "upper", path, Here(1), tile=1024)

write(3, sys.argv[1])  # compiles, imports
small = psutil.Process().memory_info().rss
write(2500, sys.argv[2])
print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - small)
"""


@pytest.mark.slow
def test_cost__memory_is_not_exceeded(tmp_path):
    command = [sys.executable, "-c", PEAK, str(tmp_path / "a"), str(tmp_path / "b")]
    grew = int(subprocess.run(command, check=True, capture_output=True).stdout)
    said = pairwise.cost(2_500, 16, 64, "upper", 1024)
    assert 0.3 * said.memory < grew < said.memory + 64 * 2_500
