"""Run a pass on the workers of a Dask cluster.

Blocks go out as tasks, a bounded window of them at a time. Parts stay on the workers and are merged
there; this process holds promises, and receives one merged part per group. A task carries the step
by name, a block and small facts, never an array: so a worker that dies costs only its tasks.
"""

import queue
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import dask
from distributed import Client, Future, KilledWorker
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError
from distributed.protocol import pickle
from distributed.scheduler import NoValidWorkerError

from dforest.errors import DforestError, RunError, SpecError
from dforest.run.events import progress
from dforest.run.passes import Fold, Part, Pass, join, take

WINDOW = 3  # tasks out at once, for each thread: the next is at hand when one ends
WAITING = 20  # answers, for each thread, that may wait here until an earlier, slower group is done
LUGGAGE = 1_000_000  # bytes that may travel with each task
TICK = 1.0  # seconds without news after which the cluster is asked whether it lives


class Cluster:
    """Runner of passes on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    wait : float, optional
        Seconds that the cluster may be without any worker, or without an answer; by default the
        ``dforest.wait`` of Dask's configuration, which is 60 unless set.
    patience : float, optional
        Seconds in which at least one task must end; by default ``dforest.patience``, 4 hours.

    Raises
    ------
    RunError
        By ``run``: no worker, tasks that kill their workers, a lost scheduler, time over.
    SpecError
        By ``run``: a step that carries more than 1 MB.
    """

    def __init__(self, client: Client, *, wait: float | None = None, patience: float | None = None):
        self.client = client
        self.wait = dask.config.get("dforest.wait", 60.0) if wait is None else wait
        self.patience = (
            dask.config.get("dforest.patience", 14_400.0) if patience is None else patience
        )

    def __repr__(self):
        return f"Cluster({self.client!r})"

    @property
    def threads(self) -> int:
        """How many tasks the workers can do at once now; 0 when nobody answers."""
        return sum(worker_threads(self.client, self.wait).values())

    def run(self, job: Pass) -> Iterator[Part]:
        """Iterate over the merged parts of the groups, in order; the bits are those of `Here`.

        An error of ours in a step is raised here as it was raised there. Whatever is still out when
        this ends, by an error, an interrupt or `close`, is withdrawn from the cluster.
        """
        check_luggage(job)
        return _run(self, job)


def worker_threads(client: Client, limit: float) -> dict[str, int]:
    """Threads of each worker by its address; empty when no scheduler answers in ``limit`` s."""
    scheduler: Any = client.scheduler  # None once the client is closed
    if scheduler is None:
        return {}
    try:
        return client.sync(scheduler.ncores, callback_timeout=limit)
    except OSError:
        return {}


def is_choked(client: Client, limit: float) -> bool:
    """Whether all workers are paused for want of memory, and none does anything that may end."""
    scheduler: Any = client.scheduler
    try:
        if any(client.sync(scheduler.ncores_running, callback_timeout=limit).values()):
            return False
        told = client.sync(scheduler.identity, n_workers=-1, callback_timeout=limit)
    except (OSError, AttributeError):  # nobody answers, or the client is closed
        return False
    workers = told["workers"].values()
    busy = any(worker["metrics"].get("task_counts", {}).get("executing") for worker in workers)
    return bool(workers) and not busy


def check_luggage(job: Pass) -> None:
    """Refuse a pass whose tasks would carry data instead of saying where it is."""
    weights = {what: _weight(getattr(job, what)) for what in ("step", "merge", "keep")}
    weights["heaviest block"] = max((_weight(b) for blocks in job.grid for b in blocks), default=0)
    for what, weight in weights.items():
        if weight > LUGGAGE:
            raise SpecError(
                f"pass {job.name!r}: its {what} weighs {weight:,} bytes, but at most {LUGGAGE:,} "
                "may travel with each task; write arrays to a store and pass its path"
            )


def _weight(thing: Any) -> int:
    return len(pickle.dumps(thing))


def _run(cluster: Cluster, job: Pass) -> Iterator[Part]:
    tasks = _Tasks(cluster, job)
    try:
        with progress(job.name, job.n_blocks) as count:
            yield from tasks.parts(count)
    finally:
        tasks.withdraw()


@dataclass
class _Task:
    what: str  # for a person to read
    group: int
    blocks: tuple  # the block that it steps; none when it merges two parts
    is_last: bool  # its answer is that of its group
    future: Future
    needs: tuple[Future, ...]  # held until this has ended: no release may overtake their use


class _Tasks:
    """The tasks of one pass that are out, and the answers that wait for their turn."""

    def __init__(self, cluster: Cluster, job: Pass):
        self.cluster, self.job = cluster, job
        self.run = uuid.uuid4().hex[:12]  # no key is ever used twice
        self.news: queue.SimpleQueue[Any] = queue.SimpleQueue()  # keys of tasks that ended
        self.out: dict[Any, _Task] = {}
        self.n_blocks_out = 0
        self.answers: dict[int, Part] = {}
        self.futures: weakref.WeakSet[Future] = weakref.WeakSet()  # all that we may still hold
        self.threads = 1
        self.last_news = self.last_worker = time.monotonic()
        self.look()

    def parts(self, count: Callable[..., None]) -> Iterator[Part]:
        """Yield the answers of the groups in order."""
        asked = self.ask(count)
        for group in range(len(self.job.grid)):
            self.fill(asked)
            while group not in self.answers:
                self.listen(count)
                self.fill(asked)
            yield self.answers.pop(group)
            self.last_news = self.last_worker = time.monotonic()  # the caller's time is not ours

    def fill(self, asked: Iterator[None]) -> None:
        """Send tasks until the window is full, or too many answers wait for an earlier group."""
        out, waiting = WINDOW * self.threads, WAITING * self.threads
        while self.n_blocks_out < out and len(self.answers) < waiting:
            if next(asked, "all sent") is not None:
                return

    def ask(self, count: Callable[..., None]) -> Iterator[None]:
        """Walk the grid; each turn sends the task of one block, or finds one group kept."""
        for group, blocks in enumerate(self.job.grid):
            part = self.job.kept(group)
            if part is not None:
                self.answers[group] = part
                count(0, kept=len(blocks))
                yield
            else:
                fold = self.fold(group)
                for number in range(len(blocks)):
                    fold.add(self.send_block(group, number))
                    yield

    def fold(self, group: int) -> Fold[Future]:
        """Merge promises as parts are merged, so that the order is the same as here."""
        job, n_parts = self.job, len(self.job.grid[group])
        turn = iter(range(n_parts))

        def merge(left: Future, right: Future, is_last: bool) -> Future:
            keep = job.keep if is_last else None
            key = f"{job.name}-merge-{group:06d}.{next(turn):06d}"
            call = (join, job.merge, left, right, keep, job.key(group))
            return self.send(key, call, f"a merge of group {group}", group, (), is_last)

        return Fold(n_parts, merge)

    def send_block(self, group: int, number: int) -> Future:
        """Send the task of one block; it keeps its part when that is the whole group."""
        job, block, is_whole = (
            self.job,
            self.job.grid[group][number],
            len(self.job.grid[group]) == 1,
        )
        key = job.key(group) if is_whole else f"{job.key(group)}.{number:06d}"
        what = f"block {number} of group {group} ({block!r:.60})"
        call = (take, job.step, block, job.keep if is_whole else None, job.key(group))
        self.n_blocks_out += 1
        return self.send(key, call, what, group, (block,), is_whole)

    def send(
        self, key: str, call: tuple, what: str, group: int, blocks: tuple, is_last: bool
    ) -> Future:
        """Submit ``call`` under a key that nobody used; merges go before blocks."""
        key = f"{key}-{self.run}"
        try:
            future = self.cluster.client.submit(*call, key=key, priority=0 if blocks else 1)
        except (CancelledError, ClosedClientError, OSError) as error:
            raise self.failure(what, "the scheduler was lost") from error
        needs = tuple(thing for thing in call if isinstance(thing, Future))
        self.futures.add(future)
        self.watch(_Task(what, group, blocks, is_last, future, needs))
        return future

    def watch(self, task: _Task) -> None:
        self.out[task.future.key] = task
        news = self.news  # not self: a callback must not keep the whole pass alive
        task.future.add_done_callback(lambda future: news.put(future.key))

    def listen(self, count: Callable[..., None]) -> None:
        """Wait for a task to end, a moment at most; look after the cluster when none does."""
        try:
            key = self.news.get(timeout=TICK)
        except queue.Empty:
            key = None
        if key is None:
            return self.look()
        task = self.out.pop(key)
        if time.monotonic() - self.last_worker > 10 * TICK:  # busy, yet workers come and go
            self.look()
        part = None
        if task.is_last or task.future.status in ("error", "cancelled"):
            part = self.fetch(task)
            if part is None:  # lost with its worker, and being made again
                return self.watch(task)
            self.answers[task.group] = part
        self.last_news = time.monotonic()
        self.n_blocks_out -= len(task.blocks)
        if task.blocks or part is not None:
            count(len(task.blocks), self.job.moved(part, *task.blocks))
        return None

    def fetch(self, task: _Task) -> Part | None:
        """Receive a task's answer or raise its error; None when it must be waited for again."""
        if task.future.status in ("lost", "pending"):
            return None
        try:
            return task.future.result(timeout=self.cluster.wait)
        except DforestError:
            raise
        except KilledWorker as error:
            why = (
                f"{error.allowed_failures + 1} workers died while they ran it, most often for want "
                "of memory, or for no sign of life in Dask's worker-ttl; use smaller blocks or "
                "give the workers more memory"
            )
            what = task.what if error.task == task.future.key else f"task {error.task}"
            raise self.failure(what, why) from error
        except NoValidWorkerError as error:
            raise self.failure(task.what, "no worker came that may run it") from error
        except (CancelledError, CommClosedError, ClosedClientError) as error:
            why = f"the scheduler was lost or restarted ({getattr(error, 'reason', error)})"
            raise self.failure(task.what, why) from error
        except TimeoutError:
            if task.future.status == "error":  # the step's own
                raise
            return None

    def look(self) -> None:
        """See how many threads there are; give up when none is left, or nothing ends."""
        threads, now = self.cluster.threads, time.monotonic()
        if threads:
            self.threads, self.last_worker = threads, now
        elif now - self.last_worker > self.cluster.wait:
            why = f"no worker or answer for {self.cluster.wait:g} s; start workers or raise `wait`"
            raise self.failure(f"{len(self.out)} tasks", why)
        silence = now - self.last_news if self.out else 0.0
        if silence > self.cluster.wait and is_choked(self.cluster.client, self.cluster.wait):
            why = (
                "all workers are paused, as their memory is full while they do nothing; "
                "give them more, or restart them"
            )
            raise self.failure(f"{len(self.out)} tasks", why)
        if silence > self.cluster.patience:
            why = (
                f"none ended in {self.cluster.patience:g} s; use smaller blocks or raise `patience`"
            )
            raise self.failure(f"{len(self.out)} tasks", why)

    def failure(self, what: str, why: str) -> RunError:
        again = "kept groups are not done again" if self.job.keep else "nothing was kept"
        return RunError(f"pass {self.job.name!r}, {what}: {why}; then run again ({again})")

    def withdraw(self) -> None:
        """Let go of all promises: the scheduler then drops what no one wants."""
        for future in tuple(self.futures):
            future.release()
        self.out.clear()
