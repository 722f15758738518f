"""Where a pass runs: here, on the active client, on a cluster of a file, on a scheduler."""

import contextlib
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from importlib import metadata

import dask
import psutil
import pytest
from distributed import Client, LocalCluster

import dforest.run.client
from dforest.errors import RunError, SpecError
from dforest.run.client import (
    ClusterSpec,
    connect,
    performance_report,
    place,
    preflight,
    versions,
)
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.memory import room_of
from run import run_steps
from run.run_steps import bits, job, read_spec

INSIDE = {"processes": False, "n_workers": 1, "dashboard_address": "127.0.0.1:0"}
BUG = ZeroDivisionError("0 / 0")
EXPECTED = bits(Here(1).run(job()))


def test_place__is_here_without_a_client():
    runner = place(n_jobs=3)
    assert isinstance(runner, Here)
    assert runner.threads == 3
    with pytest.raises(ValueError, match="No client"):
        Client.current()  # and none was made


def test_place__finds_the_active_client_or_takes_the_given_one():
    with LocalCluster(**INSIDE) as cluster:
        with Client(cluster) as active:
            assert place().client is active
            with Client(cluster, set_as_default=False) as other:
                assert place(other).client is other
                assert place().client is active
        assert isinstance(place(), Here)  # it is closed now


def test_place__is_serial_inside_a_worker():
    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        assert client.submit(lambda: repr(place(n_jobs=4))).result(timeout=10) == "Here(n_jobs=1)"
        assert isinstance(place(), Cluster)


def test_place__refuses_what_is_no_usable_client():
    with pytest.raises(SpecError, match=r"client: must be a distributed.Client, got str"):
        place("tcp://127.0.0.1:8786")
    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        pass
    with pytest.raises(SpecError, match="client: is closed"):
        place(client)
    with pytest.raises(SpecError, match="n_jobs=0"):
        place(n_jobs=0)


def test_connect__starts_a_cluster_and_stops_it():
    spec = ClusterSpec("distributed", "LocalCluster", kwargs=INSIDE, wait=20)
    with connect(spec) as client:
        runner = place()
        assert (runner.client, runner.wait) == (client, 20)
        assert bits(runner.run(job())) == EXPECTED
    assert client.status == client.cluster.status.name == "closed"
    assert isinstance(place(), Here)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (("no.such.module", "X"), "module: 'no.such.module' cannot be imported"),
        (("distributed", "NoCluster"), "class: distributed.NoCluster is no Dask cluster class"),
        (("subprocess", "Popen", ["rm"]), "class: subprocess.Popen is no Dask cluster class"),
        (("distributed", "LocalCluster", (), {"n_workers": "two"}), "refuses its args or kwargs"),
        (("distributed", "LocalCluster", (), {"memory_limit": "lots"}), "'lots' as a byte unit"),
        (("distributed", "Client", ("host:8786",)), "must be like tcp://host:8786, got 'host"),
        (("distributed", "Client", ("tcp://127.0.0.1:1",), {"a": 1}), "keyword arguments: .'a'"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_connect__says_what_is_wrong_with_a_spec(spec, message):
    with pytest.raises(SpecError, match=message), connect(ClusterSpec(*spec, wait=5)):
        pass
    gc.collect()  # Dask's half-made cluster stumbles over itself when it is deleted


@pytest.mark.parametrize("key", ["dashboard_address", "worker_dashboard_address"])
@pytest.mark.parametrize("address", [":8787", "0.0.0.0:0", "[::]:0", "8787", "example.org:1"])
def test_connect__refuses_a_dashboard_open_to_the_network(key, address):
    spec = ClusterSpec("distributed", "LocalCluster", kwargs={**INSIDE, key: address})
    with pytest.raises(SpecError, match=f"{key}: .* is open to the network"), connect(spec):
        pass


@pytest.mark.parametrize("name", ["n_workers", "wait", "patience", "memory_per_task"])
def test_cluster_spec__refuses_limits_of_nothing(name):
    with pytest.raises(SpecError, match=rf"dforest\.{name}: must be more than 0, got 0"):
        ClusterSpec("distributed", "LocalCluster", **{name: 0})


def test_connect__gives_up_on_a_silent_scheduler_and_on_absent_workers():
    start = time.monotonic()
    silent = connect("tcp://127.0.0.1:1", timeout=0.5)
    with pytest.raises(RunError, match=r"tcp://127.0.0.1:1: no answer in 0.5 s"), silent:
        pass
    spec = ClusterSpec("distributed", "LocalCluster", kwargs=INSIDE, n_workers=2, wait=1)
    with pytest.raises(RunError, match=r"workers: 1 of 2 came in 1 s"), connect(spec):
        pass
    assert time.monotonic() - start < 10


@pytest.fixture
def no_address():
    """Hide the scheduler address that the surroundings may have configured."""
    with dask.config.set({"scheduler-address": None}):
        yield


@pytest.mark.usefixtures("no_address")
def test_connect__needs_some_address():
    with pytest.raises(SpecError, match="set DASK_SCHEDULER_ADDRESS"), connect(None):
        pass


def test_connect__hands_on_what_a_task_may_use():
    spec = ClusterSpec("distributed", "LocalCluster", kwargs=INSIDE, memory_per_task=1234)
    with connect(spec):
        assert room_of(place()).per_task == 1234
    assert room_of(place()).per_task > 1234


def test_performance_report__is_written_also_when_the_work_fails(tmp_path):
    file = tmp_path / "report.html"
    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        with pytest.raises(ZeroDivisionError), performance_report(file, client):
            list(Cluster(client).run(job(functools.partial(run_steps.raise_once_asked, error=BUG))))
        assert "add-noise" in file.read_text()


def test_performance_report__says_what_is_missing(tmp_path, monkeypatch):
    def run_without_bokeh(function, package):
        assert (function, package) == (metadata.version, "bokeh")
        raise metadata.PackageNotFoundError

    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        nowhere = performance_report(tmp_path / "no" / "report.html", client)
        with pytest.raises(SpecError, match=r"report: .*/no does not exist; make it"), nowhere:
            pass
        monkeypatch.setattr(client, "run_on_scheduler", run_without_bokeh)
        refused = performance_report(tmp_path / "report.html", client)
        with pytest.raises(SpecError, match="has no bokeh; pip install 'dforest"), refused:
            pass


def test_performance_report__that_cannot_be_written_is_a_warning(tmp_path):
    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        (tmp_path / "report.html").mkdir()
        with (
            pytest.warns(UserWarning, match=r"not written \(IsADirectoryError"),
            performance_report(tmp_path / "report.html", client),
        ):
            list(Cluster(client).run(job()))


def test_preflight__passes_where_all_agree(tmp_path):
    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        assert preflight(client, tmp_path) == versions()
        assert list(tmp_path.iterdir()) == []
        cluster.scale(0)
        while client.nthreads():
            time.sleep(0.05)
        with pytest.raises(RunError, match="there are none"):
            preflight(client, tmp_path)


def test_preflight__names_the_worker_that_differs(tmp_path, monkeypatch):
    def other_numpy(nonce):
        return {**versions(), "numpy": "1.0"}, True

    def blind(nonce):
        return versions(), False

    def broken(nonce):
        raise ImportError("no module named dforest")

    with LocalCluster(**INSIDE) as cluster, Client(cluster) as client:
        for answer, kind, message in (
            (other_numpy, SpecError, r"worker inproc://\S+: has numpy 1.0, here is"),
            (blind, RunError, rf"worker inproc://\S+: does not see {tmp_path}"),
            (broken, SpecError, r"worker inproc://\S+: cannot run dforest"),
        ):
            monkeypatch.setattr(dforest.run.client, "_inspect", answer)
            with pytest.raises(kind, match=message):
                preflight(client, tmp_path)


@contextlib.contextmanager
def process(*command):
    """Run ``dask`` something as a process of its own; killed at the end."""
    tests = os.path.dirname(os.path.dirname(run_steps.__file__))
    paths = os.pathsep.join([tests, os.path.dirname(tests)])
    running = subprocess.Popen(
        [sys.executable, "-m", "dask", *command],
        env={**os.environ, "PYTHONPATH": paths, "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error"},
        stderr=subprocess.DEVNULL,
    )
    try:
        yield running
    finally:
        running.kill()
        running.wait(timeout=10)


def read_address(file):
    deadline = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.2)  # until it is written whole
    return json.loads(file.read_text())["address"]


def open_ports(pid):
    return {
        socket.laddr.ip
        for socket in psutil.Process(pid).net_connections("inet")
        if socket.status == "LISTEN"
    }


@pytest.fixture
def short_calls():
    """Let Dask knock at a dead scheduler's door for 5 s, not 30 s."""
    with dask.config.set({"distributed.comm.timeouts.connect": "5s"}):
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("short_calls")
def test_connect__a_running_scheduler_whose_worker_and_scheduler_die(tmp_path):
    file, loopback = tmp_path / "scheduler.json", ("--host", "127.0.0.1", "--port", "0")
    quiet = ("--dashboard-address", "127.0.0.1:0")
    with process("scheduler", *loopback, *quiet, "--scheduler-file", str(file)) as scheduler:
        address = read_address(file)
        worker = ("worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny")
        worker += (*quiet, "--death-timeout", "30")
        spec = read_spec("address", args=[address])
        with process(*worker) as only, connect(spec) as client:
            preflight(client, tmp_path)
            step = run_steps.slow_noise
            assert bits(place().run(job(step))) == EXPECTED
            runner = Cluster(client, wait=2)
            assert open_ports(scheduler.pid) == open_ports(only.pid) == {"127.0.0.1"}
            parts = runner.run(job(step))
            next(parts)
            os.kill(only.pid, signal.SIGKILL)
            start = time.monotonic()
            with pytest.raises(RunError, match=r"no worker or answer for 2 s; start"):
                list(parts)
            assert time.monotonic() - start < 15
            timer = threading.Timer(0.5, scheduler.kill)  # while tasks wait for a worker
            timer.start()
            with pytest.raises(RunError, match="the scheduler was lost"):
                list(place().run(job(step)))
            timer.join()


@pytest.mark.slow
def test_local_cluster__listens_on_loopback_only(two_workers):
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    assert {ip for each in processes for ip in open_ports(each.pid)} == {"127.0.0.1"}
