"""Threads of this process: the specification, and the same thing faster."""

import dataclasses
import functools
import threading
import time

import numpy as np
import pytest
from dask.system import CPU_COUNT

from dforest.errors import DataError, RunError, SpecError
from dforest.run.here import WINDOW, Here, count_threads
from run import run_steps
from run.run_steps import Folder, add, bits, job


def test_here__merges_each_group_in_order():
    for part, blocks in zip(Here(1).run(job()), run_steps.GRID, strict=True):
        total = sum(run_steps.noise(block)["x"].astype(float) for block in blocks)
        np.testing.assert_allclose(part["x"], total, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("threads", [2, 4, 7])
def test_here__gives_the_same_bits_on_any_number_of_threads(threads):
    def jitter(block):
        time.sleep(0.001 * (block * 7 % 5))  # so that blocks end out of order
        return run_steps.noise(block)

    assert bits(Here(threads).run(job(jitter))) == bits(Here(1).run(job()))


@pytest.mark.parametrize("threads", [1, 3])
def test_here__an_empty_grid_has_no_parts(threads):
    assert list(Here(threads).run(job(grid=[]))) == []


def test_here__works_on_several_blocks_at_once():
    together = threading.Barrier(3)  # breaks, and so fails, unless three steps wait at once

    def meet(block):
        together.wait(timeout=10)
        return {"x": np.zeros(1)}

    assert len(list(Here(3).run(job(meet, grid=[[i] for i in range(6)])))) == 6


def test_here__runs_at_most_a_window_ahead():
    begun = []
    parts = Here(2).run(job(lambda block: begun.append(block) or {}, grid=[[i] for i in range(99)]))
    next(parts)
    time.sleep(0.05)
    assert len(begun) <= 2 * WINDOW
    parts.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_here__an_error_surfaces_at_once_and_stops_the_rest(threads):
    begun = []

    def step(block):
        begun.append(block)
        if block == 3:
            raise DataError("row 7 is infinite")
        time.sleep(0.3 if block == 0 and threads > 1 else 0)  # the first is not waited for
        return {}

    start = time.monotonic()
    with pytest.raises(DataError, match="row 7 is infinite"):
        list(Here(threads).run(job(step, grid=[[i] for i in range(99)])))
    assert time.monotonic() - start < 2
    assert len(begun) <= 4 + 2 * WINDOW


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            MemoryError("37 GiB"),
            r"task add-noise-000001, block 5: out of memory \(37 GiB\); use sm",
        ),
        (OSError(5, "Input/output error"), r"block 5: OSError: \[Errno 5\] .*; mend that machine"),
    ],
)
def test_here__what_a_machine_does_to_a_task_is_our_error(threads, error, message):
    step = functools.partial(run_steps.raise_once_asked, error=error)
    with pytest.raises(RunError, match=message):
        list(Here(threads).run(job(step)))


def test_here__an_interrupt_ends_every_thread():
    def step(block):
        time.sleep(0.01)
        return {}

    parts = Here(2).run(job(step, name="interrupted", grid=[[i] for i in range(99)]))
    next(parts)
    with pytest.raises(KeyboardInterrupt):
        parts.throw(KeyboardInterrupt)
    assert not [t for t in threading.enumerate() if t.name.startswith("interrupted")]


@pytest.mark.parametrize("threads", [1, 2])
def test_keep__a_stopped_pass_takes_up_where_it_stopped(tmp_path, threads):
    log, kept = tmp_path / "log", tmp_path / "kept"
    log.mkdir()
    kept.mkdir()
    step = functools.partial(run_steps.log_call, folder=log)
    whole = job(step, keep=Folder(str(kept)))
    parts = Here(threads).run(whole)
    for _ in range(6):
        next(parts)
    parts.close()
    done_before = run_steps.calls(log)
    assert bits(Here(threads).run(whole)) == bits(Here(1).run(job()))
    assert run_steps.calls(log) == sorted({*done_before, *range(23)})  # none of them twice
    assert len(list(kept.glob("*.json"))) == len(run_steps.GRID)

    def never(block):
        raise AssertionError

    assert bits(Here(threads).run(dataclasses.replace(whole, step=never, merge=add))) == bits(
        Here(1).run(job())
    )


@pytest.mark.parametrize(
    ("n_jobs", "threads"),
    [(None, CPU_COUNT), (-1, CPU_COUNT), (-1000, 1), (1, 1), (3, 3), (np.int64(2), 2)],
)
def test_count_threads__reads_n_jobs_like_scikit_learn(n_jobs, threads):
    assert count_threads(n_jobs) == Here(n_jobs).threads == threads


@pytest.mark.parametrize("n_jobs", [0, 1.0, "2", True])
def test_count_threads__refuses_what_is_no_number_of_threads(n_jobs):
    with pytest.raises(SpecError, match="n_jobs="):
        count_threads(n_jobs)
