"""Answers of a cluster have the bits of those of this process, and nothing large travels."""

import numpy as np
import pytest
from distributed import Client, LocalCluster
from scipy import sparse
from small_forests import example, forest_of, plane, points

from dforest.methods import asked, tiles
from dforest.methods.answers import out_of_bag, pairwise
from dforest.methods.asked import Asked
from dforest.run import cluster as run_cluster
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.store.dataset import Dataset, DatasetWriter
from dforest.store.points import Points


@pytest.fixture(
    scope="module",
    params=["threads", pytest.param("processes", marks=pytest.mark.slow)],
)
def client(request):
    """Client of two threads, or of two processes."""
    options = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    if request.param == "threads":
        workers = {"processes": False, "n_workers": 1, "threads_per_worker": 2}
    else:
        workers = {"processes": True, "n_workers": 2, "threads_per_worker": 1}
    with (
        LocalCluster(**workers, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Scratch folder that must be empty in the end."""
    monkeypatch.setenv("DFOREST_SCRATCH", str(tmp_path / "scratch"))
    yield tmp_path / "scratch"
    assert list((tmp_path / "scratch").glob("dforest-*")) == []


@pytest.fixture
def small_blocks(monkeypatch):
    """Several tasks for few rows; workers in processes have blocks of their own sizes."""
    monkeypatch.setattr(asked, "ROWS", 7)
    monkeypatch.setattr(asked, "PAIRS", 70)


def every_answer(forest, X, new, Z, **there):
    """All that is asked of a forest."""
    yield from forest.pairwise(X, return_std=True, **there)
    yield forest.pairwise(new, X, **there)
    yield forest.paired(new, X[: len(new)], **there)
    yield from forest.kneighbors(new, 4, **there)
    yield from forest.kneighbors(n_neighbors=4, **there)
    yield forest.kneighbors_graph(new, 3, **there).toarray()
    yield from (forest.oob_pairwise(trees=trees, **there) for trees in ("both", "either"))
    yield forest.score(X, Z, **there)


@pytest.mark.parametrize(
    ("notion", "weighting"), [("precomputed", "kernel"), ("indicator", "tree")]
)
def test_answers__of_a_cluster_have_the_bits_of_this_process(
    notion, weighting, client, scratch, small_blocks
):
    X, new = points(), points(9, seed=4)
    Z = example(notion, X)[0]
    forest = forest_of(notion, weighting=weighting).fit(X, Z)
    here = list(every_answer(forest, X, new, Z))
    for one, other in zip(every_answer(forest, X, new, Z, client=client), here, strict=True):
        np.testing.assert_array_equal(one, other)


def test_tiles__of_a_cluster_have_the_bits_of_this_process(client, scratch, tmp_path):
    X, z = plane()
    model = forest_of().fit(X, z)._forest
    outside = out_of_bag(model, np.arange(40))
    for number, question in enumerate(
        [(model, model.leaves), (model, model.leaves[:9], model.leaves),
         (model, model.leaves, None, outside, "either")]
    ):  # fmt: skip
        expected = pairwise(Asked(*question), Here(1)).mean.astype(np.float32)
        for name, runner in (("here", Here(2)), ("there", Cluster(client))):
            path = tmp_path / f"{name}-{number}"
            stored = tiles.stream_pairwise(Asked(*question), path, runner, tile=16)
            np.testing.assert_array_equal(stored[:, :], expected)


def test_answers__use_the_active_client_and_send_tasks_that_weigh_little(
    client, scratch, monkeypatch
):
    monkeypatch.setattr(run_cluster, "LUGGAGE", 3_000)
    ran, whole = [], Cluster.run
    monkeypatch.setattr(Cluster, "run", lambda self, job: ran.append(job.name) or whole(self, job))
    X, z = plane()
    forest = forest_of().fit(X, z)
    many = np.random.default_rng(0).random((2_000, 2))  # their leaves have 40,000 bytes
    with client.as_current():
        forest.kneighbors(many, 2)
        forest.paired(many, many[::-1])
        forest.score(X, z)
    assert ran == ["nearest", "paired", "score"]


@pytest.mark.parametrize("is_sparse", [False, True])
def test_datasets__are_routed_block_by_block_where_tasks_run(
    is_sparse, client, scratch, tmp_path, monkeypatch
):
    X, z = plane()
    forest = forest_of().fit(X, z)
    rows = sparse.csr_array(X) if is_sparse else X
    with DatasetWriter(tmp_path / "X", dtype="float64", block_rows=9) as writer:
        writer.write(rows, ids=[f"row {i}" for i in range(40)])
        writer.publish()
    whole = Points.read

    def read(points, start, stop):
        assert stop - (start or 0) <= 9
        return whole(points, start, stop)

    monkeypatch.setattr(Points, "read", read)
    path = str(tmp_path / "X")
    expected = forest.pairwise(X)
    for there in ({}, {"client": client}):
        np.testing.assert_array_equal(forest.pairwise(path, **there), expected)
        np.testing.assert_array_equal(
            forest.pairwise(Dataset(path), X[:3], **there), expected[:, :3]
        )
        np.testing.assert_array_equal(forest.paired(path, path, **there), np.diag(expected))
        np.testing.assert_array_equal(forest.kneighbors(path, 3, **there), forest.kneighbors(X, 3))
        stored = forest.pairwise(path, out=tmp_path / f"z{len(there)}", **there)
        assert stored.ids.tolist() == [f"row {i}" for i in range(40)]
    np.testing.assert_array_equal(forest.apply(path), forest.apply(X))
