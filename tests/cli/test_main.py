"""The command line: what is printed where, and how it ends."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import small_links
from click.testing import CliRunner

from dforest.cli import main
from dforest.store.lock import Lock

HERE = """
module: distributed
class: LocalCluster
kwargs: {processes: false, n_workers: 1, threads_per_worker: 2, dashboard_address: "127.0.0.1:0"}
"""


@pytest.fixture
def link_job(tmp_path):
    """Job file that learns the links of a small graph."""
    return small_links.write_job(tmp_path)


def call(*arguments):
    """Run a command; its stdout, stderr and exit code."""
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception  # a traceback means a bug
    return result


def test_run__prints_results_on_stdout_and_progress_on_stderr(link_job):
    result = call("run", link_job)
    assert result.exit_code == 0
    assert "AUC" in result.stdout
    plan = [line for line in result.stderr.splitlines() if line.startswith(("fold", "learn"))]
    assert [line.split()[0] for line in plan] == ["fold-1", "fold-2", "learn"]
    assert "half of this process's memory" in result.stderr
    assert "memory/task" not in result.stdout


def test_run__json_is_one_object(link_job):
    found = json.loads(call("run", link_job, "--json").stdout)
    assert found["status"] == "finished"
    assert 0 <= found["results"]["forest"]["auc"]["mean"] <= 1


def test_run__again_is_a_no_op(link_job):
    first = json.loads(call("run", link_job, "--json").stdout)
    again = call("run", link_job, "--json")
    assert (again.exit_code, again.stderr) == (0, "dforest: note: finished already, nothing done\n")
    assert json.loads(again.stdout) == first


def test_run__dry_run_prints_the_plan_and_does_nothing(link_job):
    before = sorted(link_job.parent.iterdir())
    result = call("run", link_job, "--dry-run")
    assert [line.split()[0] for line in result.stdout.splitlines() if "fold" in line] == [
        "fold-1",
        "fold-2",
    ]
    assert json.loads(call("run", link_job, "--dry-run", "--json").stdout)["tasks"] == 45
    assert sorted(link_job.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["--set", "seeds=1"], 2, "unknown key 'seeds'; the nearest known key is 'seed'"),
        (["--cluster", "tcp://127.0.0.1"], 2, "scheduler"),
        (["--cluster", "no.yaml"], 2, "no.yaml: cannot be read"),
    ],
)
def test_run__own_errors_are_one_line_and_an_exit_code(link_job, arguments, code, why):
    result = call("run", link_job, "--json", *arguments)
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert line.startswith("dforest: ")
    assert why in line
    assert json.loads(result.stdout) == {"error": line.removeprefix("dforest: "), "exit_code": code}


def test_run__writes_a_performance_report_of_a_cluster(link_job):
    cluster, report = link_job.parent / "here.yaml", link_job.parent / "report.html"
    cluster.write_text(HERE)
    refused = call("run", link_job, "--performance-report", report)
    assert refused.exit_code == 2
    assert "only a Dask cluster has one; give --cluster" in refused.stderr
    arguments = ["--cluster", cluster, "--performance-report", report]
    result = call("run", link_job, *arguments)
    assert result.exit_code == 0, result.stderr
    assert "grow-trees" in report.read_text()


def test_run__out_of_memory_is_one_line(link_job, monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError("Unable to allocate 3.7 TiB")

    monkeypatch.setattr(sys.modules["dforest.cli.main"], "launch", fail)
    result = call("run", link_job)
    assert result.exit_code == 75
    assert result.stderr == (
        "dforest: out of memory (Unable to allocate 3.7 TiB); use a machine with more\n"
    )


def test_run__exits_3_when_another_run_holds_the_output(link_job):
    with Lock(link_job.parent / "out"):
        result = call("run", link_job)
    assert result.exit_code == 3
    assert f"process {os.getpid()}" in result.stderr


def test_run__exits_75_when_no_scheduler_answers(link_job):
    cluster = link_job.parent / "gone.yaml"
    cluster.write_text(
        'module: distributed\nclass: Client\nargs: ["tcp://127.0.0.1:9"]\ndforest: {wait: 1}\n'
    )
    result = call("run", link_job, "--cluster", cluster)
    assert (result.exit_code, result.stdout) == (75, "")
    assert not (link_job.parent / "out").exists()


@pytest.mark.slow
def test_run__killed_by_an_operator_says_how_to_go_on_and_resumes(link_job):
    settings = ["--set", "forest.n_estimators=100", "--set", "evaluate.folds=20"]
    command = [sys.executable, "-c", "from dforest.cli import main; main()", "run", str(link_job)]
    record = link_job.parent / "out" / "run.json"
    with subprocess.Popen([*command, *settings], stderr=subprocess.PIPE, text=True) as process:
        limit = time.monotonic() + 300  # a cold cache compiles first
        while not (record.exists() and json.loads(record.read_text())["steps"]):
            assert time.monotonic() < limit
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "dforest: interrupted; continue with --resume"
    assert json.loads(record.read_text())["status"] == "stopped"
    done = len(json.loads(record.read_text())["steps"])
    assert 0 < done < 21
    assert call("run", link_job, *settings, "--resume").exit_code == 0
    assert len(json.loads(record.read_text())["steps"]) == 21


def test_schema__is_json_schema():
    found = json.loads(call("schema").stdout)
    assert found["$schema"].startswith("https://json-schema.org/")


def test_ingest_and_inspect__make_a_store_and_say_what_it_holds(tmp_path):
    source, store = tmp_path / "a.csv", tmp_path / "a.zarr"
    source.write_text("name,width,kind\nr1,3,flat\nr2,4,tall\n")
    options = ["--id-column", "name", "--label-column", "kind"]
    made = json.loads(call("ingest", source, store, *options, "--json").stdout)
    assert (made["n_rows"], made["feature_names"]) == (2, ["width"])
    found = json.loads(call("inspect", store, "--json").stdout)
    assert (found["format"], found["n_rows"]) == ("dataset", 2)
    assert "feature_names" in call("inspect", store).stdout


def test_ingest__takes_the_features_that_are_named(tmp_path):
    (tmp_path / "people.csv").write_text("name,height,note\nann,1.7,tall\nbob,1.5,old\n")
    source, store = tmp_path / "people.csv", tmp_path / "people.zarr"
    refused = call("ingest", source, store, "--id-column", "name")
    assert refused.exit_code == 2
    assert "name the feature columns without it" in refused.stderr
    named = ("--id-column", "name", "--feature-column", "height", "--json")
    assert json.loads(call("ingest", source, store, *named).stdout)["n_features"] == 1


def test_ingest__notes_what_it_dropped_in_one_line(tmp_path):
    source = tmp_path / "edges.npz"
    np.savez(source, edges=np.array([[0, 1], [1, 1]]))
    result = call("ingest", source, tmp_path / "g.zarr")
    (note,) = [line for line in result.stderr.splitlines() if "note" in line]
    assert note.startswith("dforest: note: ")
    assert "1 edges from a row to itself were dropped" in note


def test_inspect__shows_a_run_and_refuses_what_is_nothing_of_ours(link_job):
    call("run", link_job)
    found = json.loads(call("inspect", link_job.parent / "out", "--json").stdout)
    assert (found["format"], found["status"]) == ("dforest run", "finished")
    assert call("inspect", link_job.parent).exit_code == 2


def test_inspect__knows_a_killed_run_from_one_that_runs(tmp_path):
    record = {"format": "dforest run", "version": 1, "status": "running", "seconds": 1.0}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text(json.dumps(record))

    def status():
        return json.loads(call("inspect", tmp_path / "out", "--json").stdout)["status"]

    assert status() == "stopped (killed)"
    with Lock(tmp_path / "out"):
        assert status() == "running"
    assert status() == "stopped (killed)"


def test_doctor__finds_this_machine_well():
    result = call("doctor")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["ok"] * 4


def test_doctor__says_what_is_wrong_and_to_try_again(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    result = call("doctor", "--json")
    assert result.exit_code == 75
    bad = [check["name"] for check in json.loads(result.stdout)["checks"] if not check["ok"]]
    assert bad == ["scratch space"]
