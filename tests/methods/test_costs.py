"""What a fit is said to take, and what it takes."""

import numpy as np
import pytest
from benchmarks.harness import in_fresh_process

import dforest as df
from dforest.estimators import forests, inputs
from dforest.methods import costs, fitting
from dforest.methods.tiles import write_matrix
from dforest.run.here import Here
from dforest.run.memory import Room
from dforest.store.matrix import MatrixStore

N, TILE = 6_000, 1_024
SLACK = 32 << 20  # bytes: what malloc keeps of freed memory


def apart(rows, columns):
    """Distances of points of a line, without making all of them."""
    x = np.linspace(0, 1, N, dtype=np.float32)
    return abs(x[rows, None] - x[columns])


def forest_of(**options):
    """Unfitted forest."""
    return df.DistanceForest(n_estimators=20, random_state=0, **options)


def status(key):
    """Memory of this process in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


def grown(path, room, options):
    """Bytes that a fit adds at its peak, after a small one that compiles; and the pool's rows.

    In a process of its own, which is told that it has so much room.
    """
    for module in (inputs, forests, fitting):
        module.room_of = lambda runner: room
    inputs.fits = lambda n_rows, room: False
    options |= {"n_jobs": room.tasks}
    rng = np.random.default_rng(0)
    X = rng.random((N, 3))
    x = np.linspace(0, 1, 300)[:, None]
    forest_of().fit(X[:300], abs(x - x.T))
    forest_of(**options | {"pool_size": 200}).fit(X, path)
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # forget the peak so far
    start = status("VmRSS")
    forest = forest_of(**options).fit(X, path)
    return status("VmHWM") - start, forest._forest.recipe.pool_size


@pytest.mark.slow
@pytest.mark.parametrize(("leaf_rows", "tasks"), [("in_bag", 1), ("all", 2)])
def test_stored_cost__is_not_exceeded(tmp_path, leaf_rows, tasks):
    write_matrix(tmp_path / "z", (N, N), apart, Here(2), name="write", fingerprint="z", tile=TILE)
    room = Room(96 << 20, tasks)
    options = {"leaf_rows": leaf_rows, "max_split_rows": 500, "table_budget": 32 << 20}
    forest = forest_of(**options)
    own = forest.min_samples_leaf, 500, forest.table_budget, forest.n_estimators
    pool = costs.largest_pool(N, room, *own)
    cost = costs.stored_cost(MatrixStore(tmp_path / "z"), forest, pool, room)
    assert cost.memory <= room.per_task
    found, pool_size = in_fresh_process(grown, tmp_path / "z", room, options)[0]
    assert pool_size == cost.pool < N
    assert found < tasks * cost.memory + cost.model + SLACK
