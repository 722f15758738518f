"""A run: planned, done step by step, stopped, taken up again, and never done twice."""

import json
import os

import numpy as np
import pytest
import small_links
from distributed import LocalCluster

from dforest.errors import DataError, LockedError, SpecError
from dforest.jobs.launch import launch, plan_of
from dforest.jobs.spec import read_job
from dforest.run.events import listening
from dforest.run.memory import BASE
from dforest.store.lock import Lock


@pytest.fixture
def link_job(tmp_path):
    """Job file that learns the links of a small graph."""
    return small_links.write_job(tmp_path)


def stop_after(n_steps):
    """Return a listener that stops a run once so many of its steps are done."""

    def listen(event):
        if event.name == "steps" and event.kind != "end" and event.done == n_steps:
            raise KeyboardInterrupt

    return listen


def files_of(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_launch__writes_the_model_and_a_record(link_job):
    job = read_job(link_job)
    launch(job)
    record = json.loads((job.output / "run.json").read_text())
    assert record["status"] == "finished"
    assert list(record["steps"]) == ["fold-1", "fold-2", "learn"]
    assert record["request"]["forest"]["n_estimators"] == 5
    assert record["versions"]["numpy"] == np.__version__
    passes = [one for one in record["passes"] if one["name"] == "steps"]
    assert passes[0]["done"] == passes[0]["total"] == 3
    assert 0 < passes[0]["seconds"] <= record["seconds"]
    assert record["plan"]["memory_limit_of"] == "half of this process's memory"
    assert 0 < record["plan"]["memory_per_task"] < record["plan"]["memory_limit"]
    assert sorted(path.name for path in job.output.iterdir()) == ["forest.zarr", "run.json"]


def test_launch__predicts_links_of_groups_and_reports_the_mean_over_folds(link_job):
    record = launch(read_job(link_job))
    folds = [record["steps"][name]["forest"]["auc"] for name in ("fold-1", "fold-2")]
    found = record["results"]["forest"]["auc"]
    assert found["mean"] == pytest.approx(np.mean(folds))
    assert found["spread"] == pytest.approx(np.std(folds, ddof=1))
    assert found["mean"] > 0.65
    shares = [one["share"] for one in record["results"]["telling"]]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("response", ["adjacency", "links"])
def test_launch__takes_other_responses(link_job, response):
    record = launch(read_job(link_job, [f"response={response}", "walks=null"]))
    assert record["results"]["forest"]["auc"]["mean"] > 0.6


def test_launch__of_a_finished_request_does_nothing(link_job):
    job = read_job(link_job)
    first, before = launch(job), files_of(job.output)
    assert launch(job) == first
    assert launch(read_job(link_job, ["threads=2"]), resume=True) == first
    assert files_of(job.output) == before


def test_launch__resumes_a_stopped_run_with_the_same_results(link_job):
    undisturbed = launch(read_job(link_job, ["output=" + str(link_job.parent / "other")]))
    job = read_job(link_job)
    with pytest.raises(KeyboardInterrupt), listening(stop_after(2)):
        launch(job)
    stopped = json.loads((job.output / "run.json").read_text())
    assert (stopped["status"], stopped["error"]) == ("stopped", "KeyboardInterrupt")
    with pytest.raises(SpecError, match=r"half-finished run .*2 steps done.*--resume"):
        launch(job)
    assert [step["done"] for step in plan_of(job)["steps"]] == [True, True, False]
    resumed = launch(job, resume=True)
    assert resumed["results"] == undisturbed["results"]
    assert "error" not in resumed


def test_launch__that_never_began_to_work_may_begin_anew(link_job):
    job = read_job(link_job)
    with pytest.raises(KeyboardInterrupt), listening(stop_after(0)):
        launch(job)
    assert json.loads((job.output / "run.json").read_text())["status"] == "stopped"
    assert launch(job)["status"] == "finished"


def test_launch__refuses_the_output_of_another_request_and_says_what_differs(link_job):
    job = read_job(link_job)
    launch(job)
    before = files_of(job.output)
    with pytest.raises(SpecError, match=r"forest\.n_estimators: 5 there, 6 here.*another output"):
        launch(read_job(link_job, ["forest.n_estimators=6"]), resume=True)
    assert files_of(job.output) == before


def test_launch__refuses_when_the_data_changed(link_job):
    job = read_job(link_job)
    launch(job)
    os.utime(job.graph, ns=(1, 1))
    with pytest.raises(SpecError, match=r"inputs\.graph: "):
        launch(job)


def test_launch__refuses_a_folder_of_other_files(link_job):
    job = read_job(link_job, ["output=" + str(link_job.parent)])
    with pytest.raises(SpecError, match="holds files, but no run of dforest"):
        launch(job)


def test_launch__refuses_an_output_that_is_a_file(link_job):
    with pytest.raises(SpecError, match="is a file; give a folder"):
        launch(read_job(link_job, ["output=" + str(link_job)]))


def test_launch__holds_the_lock(link_job):
    job = read_job(link_job)
    with Lock(job.output), pytest.raises(LockedError, match="is being written by process"):
        launch(job)
    assert not job.output.exists()


def test_plan_of__does_nothing_and_counts_what_is_to_do(link_job):
    job, before = read_job(link_job), files_of(link_job.parent)
    plan = plan_of(job)
    assert files_of(link_job.parent) == before
    assert plan["tasks"] == sum(step["tasks"] for step in plan["steps"]) == 3 * 3 * 5
    assert plan["memory_per_task"] > 0
    size = job.points.stat().st_size + job.graph.stat().st_size
    assert [step["bytes_read"] for step in plan["steps"]] == [size] * 3


def test_plan_of__refuses_what_exceeds_the_memory_of_a_task(link_job):
    cluster = link_job.parent / "small.yaml"
    cluster.write_text("module: distributed\nclass: Client\ndforest: {memory_per_task: 1KiB}\n")
    message = (
        r"step fold-1: 15 tasks .*, but memory_per_task of the cluster file allows 1\.0 KiB; r"
    )
    with pytest.raises(SpecError, match=message):
        plan_of(read_job(link_job), str(cluster))


LOCAL = """
module: distributed
class: LocalCluster
kwargs: {processes: false, n_workers: 1, threads_per_worker: 2, dashboard_address: "127.0.0.1:0"}
"""


def test_plan_of__starts_no_cluster_to_ask_for_its_memory(link_job):
    (link_job.parent / "local.yaml").write_text(LOCAL.replace("n_workers: 1", "n_workers: -1"))
    plan = plan_of(read_job(link_job), str(link_job.parent / "local.yaml"))
    assert plan["memory_limit"] is plan["memory_limit_of"] is None


def test_plan_of__asks_a_scheduler_that_runs(link_job):
    options = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
    limit = int((BASE + 4000) / 0.8)
    with LocalCluster(threads_per_worker=2, memory_limit=limit, **options) as cluster:
        message = (
            r"the memory limit of the weakest worker allows 2\.0 KiB; .*, or give workers more"
        )
        with pytest.raises(SpecError, match=message):
            plan_of(read_job(link_job), cluster.scheduler_address)


def test_launch__refuses_when_the_cluster_has_too_little_memory(link_job):
    (link_job.parent / "local.yaml").write_text(LOCAL + "dforest: {memory_per_task: 1KiB}")
    job = read_job(link_job)
    with pytest.raises(SpecError, match="allows 1.0 KiB"):
        launch(job, str(link_job.parent / "local.yaml"))
    assert not job.output.exists()


def test_launch__shows_the_plan_before_the_work_and_says_when_there_is_none(link_job):
    job, seen = read_job(link_job), []
    launch(job, on_plan=seen.append)
    launch(job, on_plan=seen.append)
    assert [plan["finished"] for plan in seen] == [False, True]
    assert [plan["tasks"] for plan in seen] == [45, 0]


def test_plan_of__says_no_less_than_what_is_written(link_job):
    job = read_job(link_job, ["response={graph_spectrum: 4}", "forest.n_estimators=40"])
    plan, record = plan_of(job), launch(job)
    model = sum(file.stat().st_size for file in (job.output / "forest.zarr").rglob("*"))
    names = ("grow-trees", "tabulate-leaves", "refit-leaves")
    parts = [one["bytes"] for one in record["passes"][-9:] if one["name"] in names]
    assert sum(parts[-3:]) <= plan["steps"][0]["bytes_written"] < 5 * sum(parts[-3:])
    assert model + sum(parts[-3:]) <= plan["steps"][-1]["bytes_written"]


def test_steps__refuse_points_and_graphs_of_other_sizes(link_job):
    np.save(link_job.parent / "few.npy", np.zeros((5, 2)))
    job = read_job(link_job, ["points=" + str(link_job.parent / "few.npy")])
    with pytest.raises(DataError, match=r"has 5 rows, but graph: .* has 60 nodes"):
        plan_of(job)


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("points={}/no.zarr", "points: .*no.zarr does not exist"),
        ("points={}/job.yaml", "no dataset store and no .npy.* dforest ingest"),
        ("graph={}/text.npz", "graph: .*text.npz is no .npz file"),
        ("graph={}/plain.npz", "holds a, b, no sparse matrix"),
    ],
)
def test_inputs__that_are_not_what_they_should_be_are_named(link_job, setting, complaint):
    folder = link_job.parent
    (folder / "text.npz").write_text("no archive")
    np.savez(folder / "plain.npz", a=1, b=2)
    with pytest.raises((SpecError, DataError), match=complaint):
        plan_of(read_job(link_job, [setting.format(folder)]))
