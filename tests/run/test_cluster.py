"""Tasks on workers: the same bits as here, whoever dies."""

import functools
import os
import re
import signal
import threading
import time

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.utils import key_split

from dforest import errors
from dforest.errors import RunError, SpecError
from dforest.run.cluster import WINDOW, Cluster
from dforest.run.events import listening
from dforest.run.here import Here
from run import run_steps
from run.run_steps import GRID, Folder, bits, job

pytestmark = pytest.mark.slow
INSIDE = {
    "n_workers": 1,
    "threads_per_worker": 1,
    "processes": False,
    "dashboard_address": "127.0.0.1:0",
}
EXPECTED = bits(Here(1).run(job()))


def await_no_tasks(client):
    """Fail unless the scheduler forgets every task within 10 s."""
    deadline = time.monotonic() + 10
    while tasks := client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)):
        assert time.monotonic() < deadline, tasks
        time.sleep(0.05)


def test_cluster__two_workers_give_the_bits_of_one_thread(client):
    assert bits(Cluster(client).run(job())) == EXPECTED
    await_no_tasks(client)


def test_cluster__one_worker_gives_the_bits_of_one_thread():
    with LocalCluster(**INSIDE | {"threads_per_worker": 3}) as cluster, Client(cluster) as client:
        assert Cluster(client).threads == 3
        assert bits(Cluster(client).run(job())) == EXPECTED


def test_cluster__a_worker_killed_in_mid_pass_changes_nothing(client, tmp_path):
    step = functools.partial(run_steps.die_once, folder=str(tmp_path), fatal=9)
    assert bits(Cluster(client, wait=30).run(job(step))) == EXPECTED
    assert (tmp_path / "died").exists()


def test_cluster__parts_that_wait_for_a_merge_and_die_with_their_worker_are_made_again(
    client, tmp_path
):
    whole = job(grid=[list(range(16))])
    step = functools.partial(run_steps.die_once, folder=str(tmp_path), fatal=13)
    assert bits(Cluster(client, wait=30).run(job(step, grid=whole.grid))) == bits(
        Here(1).run(whole)
    )
    assert (tmp_path / "died").exists()


def test_cluster__all_workers_lost_at_once_come_back(client, tmp_path):
    step = functools.partial(run_steps.die_together, folder=str(tmp_path))
    assert bits(Cluster(client, wait=30).run(job(step))) == EXPECTED
    assert len(list(tmp_path.iterdir())) == 2


def test_cluster__a_restart_of_the_cluster_is_one_clear_error(tmp_path):
    whole = job(functools.partial(run_steps.slow_noise, seconds=0.1), keep=Folder(str(tmp_path)))
    with (
        LocalCluster(**INSIDE, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        parts = Cluster(client, wait=30).run(whole)
        next(parts)
        client.restart(wait_for_workers=False)
        message = r"lost or restarted .*; then run again \(kept groups are not done again"
        with pytest.raises(RunError, match=message):
            list(parts)
    assert bits(Here(1).run(whole)) == EXPECTED


def test_cluster__gives_up_when_all_workers_are_paused():
    with (
        dask.config.set({"distributed.worker.memory.pause": 0.0001}),
        LocalCluster(**INSIDE, silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        deadline = time.monotonic() + 10
        while cluster.workers[0].status.name != "paused":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(RunError, match="4 tasks: all workers are paused, as their memory is"):
            list(Cluster(client, wait=1).run(job()))


def test_cluster__names_the_block_that_kills_every_worker(client):
    def allow(failures):
        client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures)
        )

    allow(0)
    try:
        with pytest.raises(RunError, match=r"block 0 of group 0 \(7\): 1 workers died"):
            list(Cluster(client, wait=30).run(job(run_steps.die, grid=[[7]])))
    finally:
        allow(3)
    await_no_tasks(client)


KINDS = ["DataError", "SpecError", "StoreError", "NotFittedError", "LockedError", "RunError"]


@pytest.mark.parametrize(("kind", "fatal"), [*((kind, 14) for kind in KINDS), ("DataError", 3)])
def test_cluster__our_errors_come_back_as_they_were(client, kind, fatal):
    step = functools.partial(run_steps.fail, kind=kind, fatal=fatal)
    with pytest.raises(errors.DforestError) as caught:
        list(Cluster(client).run(job(step)))
    assert type(caught.value) is getattr(errors, kind)
    assert str(caught.value) == f"block {fatal}: has -1 rows, at least 0 are needed"
    await_no_tasks(client)


def test_cluster__an_error_of_merging_comes_back_too(client):
    with pytest.raises(KeyError, match="y"):
        list(Cluster(client).run(job(merge=lambda left, right: {"y": left["x"] + right["y"]})))


def test_cluster__what_failed_is_not_tried_again(client, tmp_path):
    error = errors.StoreError("z.zarr: block (0, 1) is damaged; write it again")
    step = functools.partial(run_steps.fail_and_log, folder=str(tmp_path), error=error)
    with pytest.raises(errors.StoreError, match="is damaged"):
        list(Cluster(client).run(job(step, grid=[[0, 1]])))
    time.sleep(0.3)
    assert run_steps.calls(tmp_path)
    assert len(run_steps.calls(tmp_path)) == len(set(run_steps.calls(tmp_path)))


def test_cluster__a_machine_out_of_memory_is_our_error(client):
    step = functools.partial(run_steps.raise_once_asked, error=MemoryError("37 GiB"))
    with pytest.raises(
        RunError, match=r"task add-noise-000001, block 5: out of memory \(37 GiB\);"
    ):
        list(Cluster(client).run(job(step)))


@pytest.mark.parametrize("error", [RuntimeError("no loop"), ZeroDivisionError("0 / 0")])
def test_cluster__bugs_come_back_as_they_were(client, error):
    def step(block):
        raise error

    with pytest.raises(type(error), match=str(error)):
        list(Cluster(client).run(job(step)))


def test_cluster__refuses_tasks_that_carry_arrays(client):
    array = np.zeros(200_000)
    heavy = functools.partial(run_steps.fail, kind=array, fatal=-1)
    with pytest.raises(SpecError, match=r"its step weighs 1,600,\d+ bytes, but at most 1,000,000"):
        Cluster(client).run(job(heavy))
    with pytest.raises(SpecError, match="its heaviest block weighs"):
        Cluster(client).run(job(grid=[[0], [array]]))


def test_cluster__keys_can_be_read_and_never_come_again(client):
    def keys():
        parts = Cluster(client).run(job(run_steps.name_task, grid=[[0], [1]]))
        return ["".join(map(chr, part["key"])) for part in parts]

    first, second = keys(), keys()
    assert not set(first) & set(second)
    for group, key in enumerate(first):
        assert re.fullmatch(rf"add-noise-00000{group}-[0-9a-f]{{12}}", key)
        assert key_split(key) == "add-noise"  # what the dashboard shows


def test_cluster__the_dashboard_shows_steps_and_merges(client):
    def sent(dask_scheduler):
        return set(dask_scheduler.task_prefixes)

    before = client.run_on_scheduler(sent)
    list(Cluster(client).run(job(name="fill-jars")))
    assert client.run_on_scheduler(sent) - before == {"fill-jars", "fill-jars-merge"}


def test_cluster__steps_are_not_run_twice(client, tmp_path):
    step = functools.partial(run_steps.log_call, folder=str(tmp_path))
    list(Cluster(client).run(job(step)))
    assert run_steps.calls(tmp_path) == list(range(23))


def test_cluster__sends_a_window_of_tasks_and_withdraws_it(client, tmp_path):
    step = functools.partial(run_steps.log_call, folder=str(tmp_path))
    parts = Cluster(client).run(job(step, grid=[[i] for i in range(99)]))
    next(parts)
    time.sleep(0.5)
    assert len(run_steps.calls(tmp_path)) <= 2 * 2 * WINDOW
    parts.close()
    await_no_tasks(client)


def test_cluster__an_interrupt_withdraws_every_task(client):
    step = functools.partial(run_steps.slow_noise, seconds=0.3)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(Cluster(client).run(job(step, grid=[list(range(99))])))
    timer.join()
    signal.signal(signal.SIGINT, before)
    await_no_tasks(client)


def test_cluster__counts_every_block_once(client):
    heard = []
    with listening(heard.append):
        parts = list(Cluster(client).run(job()))
    assert [event.done for event in heard if event.kind == "step"][-1] == 23
    assert (heard[-1].kind, heard[-1].done, heard[-1].total) == ("end", 23, 23)
    assert heard[-1].bytes == sum(part["x"].nbytes for part in parts)


def test_cluster__counts_bytes_of_blocks_and_what_was_kept_apart(client, tmp_path):
    heard, keep = [], Folder(str(tmp_path))
    list(Cluster(client).run(job(keep=keep)))
    (tmp_path / "add-noise-000002.json").unlink()  # a group of 3 blocks
    with listening(heard.append):
        list(Cluster(client).run(job(keep=keep, bytes_of=lambda block: 7)))
    assert (heard[-1].done, heard[-1].kept, heard[-1].bytes) == (23, 20, 21)


def test_keep__workers_keep_and_nothing_is_done_again(client, tmp_path):
    log, kept = tmp_path / "log", tmp_path / "kept"
    log.mkdir()
    kept.mkdir()
    step = functools.partial(run_steps.log_call, folder=str(log))
    whole = job(step, keep=Folder(str(kept)))
    parts = Cluster(client).run(whole)
    for _ in range(5):
        next(parts)
    parts.close()
    await_no_tasks(client)
    assert len(list(kept.glob("*.json"))) >= 5
    for _ in range(2):  # the second time there is nothing to do
        assert bits(Cluster(client).run(whole)) == EXPECTED
    assert run_steps.calls(log) == list(range(23))
    writers = {int(path.read_text()) for path in kept.glob("*.writer")}
    assert len(list(kept.glob("*.json"))) == len(GRID)
    assert os.getpid() not in writers


def test_cluster__gives_up_when_nothing_ends(client):
    step = functools.partial(run_steps.slow_noise, seconds=3)
    with pytest.raises(RunError, match=r"1 tasks: none ended in 0.5 s; use smaller blocks or"):
        list(Cluster(client, patience=0.5).run(job(step, grid=[[0]])))


def test_cluster__a_closed_client_is_an_error_at_once(client):
    with Client(client.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(RunError, match="the scheduler was lost"):
        list(Cluster(other, wait=1).run(job()))
