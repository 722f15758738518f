"""The general job, on every kind of distance and source."""

import numpy as np
import pytest
from scipy import sparse

from dforest.errors import DataError, SpecError
from dforest.jobs import sources
from dforest.jobs.launch import launch, plan_of
from dforest.jobs.spec import read_job
from dforest.store.dataset import DatasetWriter
from dforest.store.graph import write_graph

SHARED = """
kind: distance_forest
output: out
points: points.zarr
threads: 1
forest: {n_estimators: 8, min_samples_leaf: 3}
"""


@pytest.fixture
def job_with(tmp_path):
    """Return a function that writes a job on 40 points of a square, and reads it."""
    X = np.random.default_rng(0).random((40, 2))
    near = np.exp(-9 * ((X[:, None] - X) ** 2).sum(2))
    with DatasetWriter(tmp_path / "points.zarr", feature_names=["east", "north"]) as writer:
        writer.write(X, labels=(4 * X[:, 0]).astype(int), response=X[:, :1] * 3)
        writer.publish()
    np.save(tmp_path / "points.npy", X)
    np.save(tmp_path / "z.npy", np.linalg.norm(X[:, None] - X, axis=2).astype(np.float32))
    links = sparse.csr_array(np.where(near > 0.5, near, 0) - np.eye(40))
    write_graph(tmp_path / "links.zarr", links)

    def write(more):
        path = tmp_path / "job.yaml"
        path.write_text(SHARED + more)
        return read_job(path)

    return write


@pytest.mark.parametrize(
    "more",
    [
        "distance: precomputed\nmatrix: z.npy",
        "distance: graph\ngraph: links.zarr",
        "distance: indicator",
        "distance: half_squared",
        "distance: absolute",
    ],
)
def test_distance_forest__learns_every_kind_of_distance(job_with, more):
    job = job_with(f"{more}\nevaluate: {{folds: 2}}")
    results = launch(job)["results"]
    assert (job.output / "forest.zarr").is_dir()
    assert results["r2"]["held_out_to_seen"]["mean"] > 0.2
    assert {one["feature"] for one in results["telling"]} == {"east", "north"}


def test_distance_forest__does_not_judge_unless_asked(job_with):
    record = launch(job_with("matrix: z.npy"))
    assert list(record["steps"]) == ["learn"]
    assert "r2" not in record["results"]


def test_distance_forest__refuses_a_matrix_of_other_rows(job_with):
    job = job_with("matrix: few.npy")
    np.save(job.matrix, np.zeros((39, 39), np.float32))
    with pytest.raises(DataError, match=r"has 40 rows, but matrix: .* is 39 x 39"):
        plan_of(job)


def test_distance_forest__refuses_points_without_labels(job_with):
    job = job_with("distance: indicator")
    job = job.model_copy(update={"points": job.points.with_name("points.npy")})
    with pytest.raises(SpecError, match="has no labels, which this distance is learned from"):
        plan_of(job)


def test_plan_of__refuses_more_folds_than_rows_before_anything_runs(job_with):
    job = job_with("matrix: z.npy\ndistance: precomputed\nevaluate: {folds: 41}")
    with pytest.raises(SpecError, match="evaluate.folds: 41 is more than the 40 rows"):
        plan_of(job)


def test_plan_of__counts_the_matrix_in_memory(job_with):
    small = plan_of(job_with("matrix: z.npy\ndistance: precomputed"))["memory_per_task"]
    without = plan_of(job_with("distance: indicator"))["memory_per_task"]
    assert small >= without + 4 * 40**2


def test_read_links__matches_the_ids_of_both_stores(tmp_path):
    ids, X = np.array(["c", "a", "b"]), np.array([[0.0], [1.0], [2.0]])
    with DatasetWriter(tmp_path / "points.zarr") as writer:
        writer.write(X, ids=ids)
        writer.publish()
    links = np.array([[0.0, 2, 0], [2, 0, 1], [0, 1, 0]])
    order = np.argsort(ids)
    there = sparse.csr_array(links[np.ix_(order, order)])
    write_graph(tmp_path / "links.zarr", there, ids=ids[order])
    found = sources.read_links(tmp_path / "links.zarr", tmp_path / "points.zarr")
    np.testing.assert_array_equal(found.weights.toarray(), links)
    write_graph(tmp_path / "others.zarr", there, ids=["a", "b", "d"])
    with pytest.raises(DataError, match="'c'"):
        sources.read_links(tmp_path / "others.zarr", tmp_path / "points.zarr")
