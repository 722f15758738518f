"""Matrices larger than memory: each pass beside just reading the same bytes; one worker and two.

A Euclidean matrix is written tile by tile, a forest is fitted on the store (a pool is read, trees
grow, all rows are tabulated by streaming), and learned distances are written: in this process on
one thread, then on one and on two workers of one thread each. "MB/s" is of float32 that a pass
reads or writes, "ratio reading" how many times reading and checksumming as many bytes takes, "ns"
an entry of the matrix and tree. Peaks are above the start of the process, after a small run of the
same code that compiles it; the plan's figure stands beside. Seconds are on the wall.
"""

import contextlib
import pathlib
import sys
import tempfile
import time
from typing import NamedTuple

import numpy as np
from distributed import Client, LocalCluster

import dforest as df
from benchmarks.harness import Row, in_fresh_process
from dforest.methods.costs import stored_cost
from dforest.run.cluster import Cluster
from dforest.run.events import listening
from dforest.run.here import Here
from dforest.run.memory import room_of
from dforest.run.passes import Pass
from dforest.store.matrix import MatrixStore

READING, WRITING = {"pool", "tabulate-leaves"}, {"distances", "write-pairs"}
SHOWN = ("distances", "pool", "grow-trees", "tabulate-leaves", "write-pairs")


class Size(NamedTuple):
    """One run."""

    n: int
    trees: int
    pool: int | None
    tile: int = 1_024
    memory: str = "4GB"  # of a worker


HERE = {
    "toy": [Size(300, 3, 100, 64)],
    "full": [Size(12_000, trees, 2_000) for trees in (10, 30, 100)],
}
WORKERS = {
    "toy": [Size(200, 3, 100, 64)],
    "full": [Size(12_000, 100, 2_000), Size(50_000, 50, None, memory="2GB")],
}
TASKS = {"toy": (2, 0.05), "full": (10, 1.0)}  # tasks, and seconds of each


def run(scale: str) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in HERE[scale]:
            rows += in_fresh_process(_here, size, folder)[0]
        for size in WORKERS[scale]:
            counts = (2,) if size.n > 20_000 else (1, 2)
            found = [_on_workers(count, size, folder) for count in counts]
            rows += _with_scaling(found)
    return [*rows, *_overhead(*TASKS[scale])]


# One run -----------------------------------------------------------------------------------------


def _here(size: Size, folder: str) -> list[Row]:
    """In this process, on one thread."""
    _work(Size(150, 2, 100, 64), folder, Here(1), None)  # compiles
    return _work(size, folder, Here(1), None)


def _on_workers(count: int, size: Size, folder: str) -> list[Row]:
    options = {"threads_per_worker": 1, "memory_limit": size.memory, "silence_logs": 50}
    with (
        LocalCluster(n_workers=count, dashboard_address="127.0.0.1:0", **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        _work(Size(150, 2 * count, 100, 64), folder, Cluster(client), client)
        return _work(size, folder, Cluster(client), client)


def _work(size: Size, folder: str, runner, client) -> list[Row]:
    """Write, read, fit, and write what was learned; one row a pass."""
    n, where = size.n, f"{count_of(client)} workers" if client else "here"
    X = np.random.default_rng(0).random((n, 8))
    z, learned = (pathlib.Path(folder) / f"{name}-{n}.zarr" for name in ("z", "learned"))
    room = room_of(runner)
    options = {"n_estimators": size.trees, "leaf_rows": "all", "pool_size": size.pool}
    forest = df.DistanceForest(**options, n_jobs=1, random_state=0)
    rows: list[Row] = []
    with _passes(rows, client, {"rows": n, "where": where}):
        df.pairwise_distances(X[:, :4], out=z, tile=size.tile, n_jobs=1, client=client)
        rate = _reading(MatrixStore(z))
        forest.fit(X, z, client=client)
        df.pairwise_distances(
            X, distance=forest, out=learned, tile=size.tile, n_jobs=1, client=client
        )
    pool = forest._forest.recipe.pool_size or n
    planned = stored_cost(MatrixStore(z), forest, pool, room).memory
    for row in rows:
        _compare(row, rate, size, planned, pool)
    return rows


def _reading(store: MatrixStore) -> float:
    """Bytes a second when all tiles are read, decoded and checked, and nothing else is done."""
    start, n_bytes = time.perf_counter(), 0
    for a, b in store.tiles():
        n_bytes += store.read_tile(a, b).nbytes
    return n_bytes / (time.perf_counter() - start)


def _compare(row: Row, rate: float, size: Size, planned: int, pool: int) -> None:
    seconds, n_bytes, name = row["s"], row["MB"] * 1e6, row["pass"]
    entries = size.n * (size.n + 1) / 2
    if name in READING or name in WRITING:
        row["MB/s"] = n_bytes / seconds / 1e6
        row["ratio reading"] = seconds / (n_bytes / rate)
    if name in ("tabulate-leaves", "write-pairs"):
        row["ns"] = seconds / entries / size.trees * 1e9
        row["trees"] = size.trees
    if name == "grow-trees":
        row["trees"], row["pool"] = size.trees, pool
    if name in READING or name == "grow-trees":
        row["planned MB"] = planned / 1e6


@contextlib.contextmanager
def _passes(rows: list[Row], client, said: Row):
    """Add a row for every pass of interest that runs in the context."""
    start = _memory(client, "VmRSS")

    def listen(event):
        if event.kind == "begin":
            _forget(client)
        elif event.kind == "end" and event.name in SHOWN:
            peak = (_memory(client, "VmHWM") - start).max() / 1e6
            done: Row = {"pass": event.name, **said, "s": event.seconds, "MB": event.bytes / 1e6}
            rows.append(done | {"tasks": event.total, "peak MB": float(peak)})
            print(rows[-1], file=sys.stderr, flush=True)  # the whole takes long

    with listening(listen):
        yield


def _memory(client, key: str) -> np.ndarray:
    """Bytes of each worker, or of this process."""
    found = client.run(_status, key).values() if client else [_status(key)]
    return np.array(list(found))


def _forget(client) -> None:
    client.run(_forget_peak) if client else _forget_peak()


def _status(key: str) -> int:
    text = pathlib.Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith(key))) * 1024


def _forget_peak() -> None:
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def count_of(client) -> int:
    """Workers of a client."""
    return len(client.scheduler_info(n_workers=-1)["workers"])


def _with_scaling(runs: list[list[Row]]) -> list[Row]:
    """Rows of all runs; those on two workers say how many times faster they are than on one."""
    if len(runs) == 2:
        for one, two in zip(*runs, strict=True):
            two["ratio one worker"] = one["s"] / two["s"]
    return [row for rows in runs for row in rows]


# What a task costs -------------------------------------------------------------------------------


def busy(seconds: float) -> dict[str, np.ndarray]:
    """Work that long, of this thread's time, in steps that let others talk."""
    start = time.thread_time()
    while time.thread_time() - start < seconds:
        np.sqrt(np.arange(10_000.0))
    return {"done": np.ones(1)}


def _overhead(count: int, seconds: float) -> list[Row]:
    """The same tasks in a plain loop and on one worker; then tasks that do nothing."""
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    rows: list[Row] = []
    with (
        LocalCluster(n_workers=1, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for tasks, each in ((count, seconds), (50 * count, 0.0)):
            taken = []
            for runner in (Here(1), Cluster(client)):
                list(runner.run(Pass("warm", busy, [[0.0]])))
                start = time.perf_counter()
                list(runner.run(Pass("busy", busy, [[each]] * tasks)))
                taken.append(time.perf_counter() - start)
            row: Row = {"pass": f"tasks of {each:g} s", "where": "1 workers", "s": taken[1]}
            row |= {"tasks": tasks, "ms a task": (taken[1] - taken[0]) / tasks * 1e3}
            rows.append(row | ({"ratio plain loop": taken[1] / taken[0]} if each else {}))
    return rows
