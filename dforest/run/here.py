"""Run a pass in this process: one thread is the specification, several are faster."""

import collections
import numbers
from collections.abc import Iterator
from concurrent import futures
from typing import Any

from dask.system import CPU_COUNT  # obeys affinity and the limits of a container

from dforest.errors import SpecError
from dforest.run.events import progress
from dforest.run.passes import Fold, Part, Pass, join, take

WINDOW = 4  # blocks asked for ahead, for each thread: enough that a slow one does not idle the rest


def count_threads(n_jobs) -> int:
    """Threads that ``n_jobs`` asks for, in scikit-learn's manner: None or -1 all, -2 all but one.

    >>> count_threads(3)
    3
    """
    if n_jobs is None:
        return CPU_COUNT
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise SpecError(
            f"n_jobs={n_jobs!r}: must be a whole number of threads, -1 for all, or None"
        )
    wanted = int(n_jobs)
    return wanted if wanted > 0 else max(1, CPU_COUNT + 1 + wanted)


class Here:
    """Runner of passes on the threads of this process.

    Parameters
    ----------
    n_jobs : int, optional
        Threads; None or -1 for all that this process may use, -2 for all but one.

    Attributes
    ----------
    threads : int
        How many blocks are worked on at once.

    Raises
    ------
    SpecError
        ``n_jobs`` is 0 or no whole number.

    Examples
    --------
    >>> import numpy as np
    >>> job = Pass("double", lambda block: {"x": np.array([2 * block])}, [[1], [2], [3]])
    >>> [int(part["x"][0]) for part in Here(n_jobs=2).run(job)]
    [2, 4, 6]
    """

    def __init__(self, n_jobs: int | None = None):
        self.threads = count_threads(n_jobs)

    def __repr__(self):
        return f"Here(n_jobs={self.threads})"

    def run(self, job: Pass) -> Iterator[Part]:
        """Iterate over the merged parts of the groups, in order; work goes on as it is iterated.

        An error in a step is raised as soon as it happens, and nothing new is begun; the same when
        the iterator is closed or the user interrupts.
        """
        return _serial(job) if self.threads == 1 else _threaded(job, self.threads)


def _serial(job: Pass) -> Iterator[Part]:
    """Loop over the grid: what every other runner must equal."""
    with progress(job.name, job.n_blocks) as count:
        for group, blocks in enumerate(job.grid):
            part = job.kept(group)
            if part is not None:
                count(0, kept=len(blocks))
            else:
                fold = _fold(job, group, len(blocks))
                for block in blocks:
                    part = fold.add(_take(job, group, block))
                    count(1, job.moved(part, block))
            assert part is not None
            yield part


def _threaded(job: Pass, threads: int) -> Iterator[Part]:
    pool = futures.ThreadPoolExecutor(threads, thread_name_prefix=job.name)
    window: collections.deque = collections.deque()
    asked = _ask(job, pool)
    try:
        with progress(job.name, job.n_blocks) as count:
            while True:
                while len(window) < WINDOW * threads and (ticket := next(asked, None)) is not None:
                    window.append(ticket)
                if not window:
                    return
                _await_first([future for *_, future in window])
                fold, blocks, n_kept, future = window.popleft()
                part = fold.add(future.result())
                count(len(blocks), job.moved(part, *blocks) if blocks else 0, kept=n_kept)
                if part is not None:
                    yield part
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ask(job: Pass, pool: futures.Executor) -> Iterator[tuple[Fold[Part], list, int, Any]]:
    """Hand blocks to the pool: (where its part goes, the block, blocks found done, promise)."""
    for group, blocks in enumerate(job.grid):
        part = job.kept(group)
        if part is not None:
            ready: futures.Future = futures.Future()
            ready.set_result(part)
            yield _fold(job, group, 1), [], len(blocks), ready
        else:
            fold = _fold(job, group, len(blocks))
            for block in blocks:
                yield fold, [block], 0, pool.submit(_take, job, group, block)


def _await_first(promises: list[futures.Future]) -> None:
    """Wait for the first promise, but raise the error of any as soon as there is one."""
    pending = set(promises)
    while True:
        done = {promise for promise in pending if promise.done()}
        for promise in done:
            promise.result()
        if promises[0] in done:
            return
        pending -= done
        futures.wait(pending, return_when=futures.FIRST_COMPLETED)


def _take(job: Pass, group: int, block) -> Part:
    is_whole = len(job.grid[group]) == 1
    return take(job.step, block, job.keep if is_whole else None, job.key(group))


def _fold(job: Pass, group: int, n_parts: int) -> Fold[Part]:
    def merge(left: Part, right: Part, is_last: bool) -> Part:
        return join(job.merge, left, right, job.keep if is_last else None, job.key(group))

    return Fold(n_parts, merge)
