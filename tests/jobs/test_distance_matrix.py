"""The job that computes a matrix: what it writes, plans, refuses, and how it goes on."""

import numpy as np
import pytest
from scipy import sparse
from small_forests import example, forest_of, points

import dforest as df
from dforest.distances.table import TABLE
from dforest.errors import DataError, RunError, SpecError
from dforest.jobs import distance_matrix, spec
from dforest.jobs.launch import as_text, launch, plan_of
from dforest.jobs.spec import read_job
from dforest.methods import pairwise
from dforest.run.memory import Room
from dforest.store.dataset import DatasetWriter
from dforest.store.matrix import MatrixWriter

SHARED = "kind: distance_matrix\noutput: out\nthreads: 1\ntile: 16\n"


@pytest.fixture
def job_with(tmp_path):
    """Return a function that writes a job on 40 rows, and reads it."""
    X = points() + 1
    with DatasetWriter(tmp_path / "points.zarr") as writer:
        writer.write(X, ids=[f"row {i}" for i in range(40)])
        writer.publish()
    np.save(tmp_path / "points.npy", X)
    sparse.save_npz(tmp_path / "points.npz", sparse.csr_array(X * (X > 1)))

    def write(more):
        path = tmp_path / "job.yaml"
        path.write_text(SHARED + more)
        return read_job(path)

    return write


@pytest.mark.parametrize("suffix", ["zarr", "npy", "npz"])
def test_distance_matrix__writes_what_the_function_computes(suffix, job_with):
    job = job_with(f"points: points.{suffix}\ndistance: minkowski\noptions: {{p: 3, w: [1, 0, 2]}}")
    record = launch(job)
    found, stored = record["results"], df.MatrixStore(job.output / "distances.zarr")
    X = job.points if suffix == "zarr" else distance_matrix.sources.read_points(job.points)
    expected = df.pairwise_distances(X, distance="minkowski", p=3, w=[1, 0, 2])
    np.testing.assert_array_equal(stored[:, :], expected.astype(np.float32))
    assert (stored.ids is not None) == (suffix == "zarr")
    assert (found["n"], found["tiles"], found["largest"]) == (40, 6, stored.largest)
    files = (job.output / "distances.zarr").glob("v1/z/c/*/*")
    assert found["bytes"] == sum(file.stat().st_size for file in files)
    assert found["seconds"] >= 0
    assert "Distances of 40 rows with each other" in as_text(record)[0]
    assert [one["name"] for one in record["passes"]] == ["distances", "steps"]


def test_distance_matrix__computes_what_a_forest_has_learned(job_with, tmp_path):
    X = points() + 1
    forest = forest_of().fit(X, example("precomputed", X)[0])
    forest.save(tmp_path / "forest.zarr")
    job = job_with("points: points.npy\nmodel: forest.zarr\nsymmetric: full")
    found = launch(job)["results"]
    assert found["tiles"] == 9
    stored = df.MatrixStore(job.output / found["matrix"])
    np.testing.assert_array_equal(stored[:, :], forest.pairwise(X).astype(np.float32))


def test_distance_names__are_those_of_the_table():
    names = spec.DistanceName.__args__
    assert sorted(names) == sorted(name for name, line in TABLE.items() if line.kind == "vectors")
    known = {option for line in TABLE.values() for option in line.options}
    assert known == spec.DistanceOptions.model_fields.keys()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("points: points.npy", "distance and model: give one of the two, got neither"),
        ("points: points.npy\ndistance: cosine\nmodel: m.zarr", "give one of the two, got both"),
        ("points: points.npy\nmodel: m.zarr\noptions: {p: 3}", "options are for a named distance"),
        ("points: points.npy\ndistance: cosin", "distance: must be 'euclidean', "),
        ("points: points.npy\ndistance: minkowski\noptions: {q: 3}", "options: unknown key 'q'"),
        (
            "points: points.npy\ndistance: minkowski\noptions: {p: 0.5}",
            "options.p: must be greater",
        ),
    ],
)
def test_read_job__refuses_impossible_requests(job_with, more, complaint):
    with pytest.raises(SpecError, match=complaint):
        job_with(more)


def test_plan_of__refuses_what_does_not_fit_before_anything_runs(job_with, tmp_path):
    for more, error, complaint in (
        ("distance: cosine\noptions: {p: 3}", SpecError, "'cosine' takes no options, got 'p'"),
        ("distance: minkowski\noptions: {w: [1, 2]}", SpecError, "one weight for each of 3"),
        ("model: absent.zarr", SpecError, r"model: .*absent\.zarr does not exist"),
        ("model: forest.zarr", DataError, r"rows have 3 features, but model: .* fitted on 2"),
    ):
        if "forest" in more:
            X = points(p=2)
            forest_of().fit(X, example("precomputed", X)[0]).save(tmp_path / "forest.zarr")
        with pytest.raises(error, match=complaint):
            plan_of(job_with(f"points: points.npy\n{more}"))


def test_steps__say_what_the_job_takes(job_with):
    upper, full = (
        distance_matrix.steps(
            job_with(f"points: points.npy\ndistance: cosine\nsymmetric: {layout}"), Room(1, 1)
        )[0]
        for layout in ("upper", "full")
    )
    assert upper.tasks == full.tasks == 6
    assert (upper.writes, full.writes) == (4 * (40**2 + 16**2 + 16**2 + 8**2) // 2, 4 * 40**2)
    job = job_with("points: points.npy\ndistance: cosine")
    alone, crowd = (distance_matrix.steps(job, Room(1, tasks))[0].memory for tasks in (1, 4))
    assert alone - crowd == 8 * 40 * 3 * 3 // 4  # the tasks of a process share the points


def test_a_stopped_job__goes_on_with_resume_only(job_with, monkeypatch):
    job = job_with("points: points.zarr\ndistance: chebyshev")
    with monkeypatch.context() as patch:
        patch.setattr(MatrixWriter, "publish", lambda *_: (_ for _ in ()).throw(RunError("gone")))
        with pytest.raises(RunError):
            launch(job)
    with pytest.raises(SpecError, match="continue it with --resume"):
        launch(job)
    monkeypatch.setattr(pairwise, "_tile", lambda *_, **__: pytest.fail("done again"))
    launch(job, resume=True)
    assert df.MatrixStore(job.output / "distances.zarr").ids[7] == "row 7"
