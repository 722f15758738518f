"""How much memory there is, for this process and for the tasks of a runner."""

import collections
import resource
import socket
from typing import NamedTuple

import dask
from distributed import Worker
from distributed.system import memory_limit  # obeys the limits of a container

from dforest.errors import SpecError
from dforest.run.client import ask_workers
from dforest.run.cluster import Cluster
from dforest.run.here import Here

BASE = 600 << 20  # bytes of a worker that has compiled our code; 380 MiB if it came from the cache


def memory_bytes() -> int:
    """Bytes that this process may use: of the machine, its container, or its own limits.

    >>> memory_bytes() > 0
    True
    """
    own = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min([memory_limit(), *(limit for limit in own if limit != resource.RLIM_INFINITY)])


class Room(NamedTuple):
    """Memory for tasks.

    >>> Room(total=1_000, tasks=3).per_task
    333
    """

    total: int  # bytes that all tasks of one process may use together
    tasks: int  # that run in it at once

    @property
    def per_task(self) -> int:
        """Bytes that each of them may use beside what they share."""
        return self.total // self.tasks


def room_of(runner: Here | Cluster) -> Room:
    """Memory for the tasks of a runner: of its weakest worker, or half of this process's.

    A worker's tasks may use its limit up to where Dask pauses it, less what the interpreter takes
    with our code in it; a worker without a limit, its share of its host's memory. The
    ``memory_per_task`` of a cluster file goes before all that.

    Raises
    ------
    RunError
        There is no worker, or none answers.
    SpecError
        A worker's limit leaves nothing for tasks; dforest is missing there.

    Examples
    --------
    >>> room = room_of(Here(n_jobs=2))
    >>> room.tasks, room.per_task == memory_bytes() // 2 // 2
    (2, True)
    """
    if isinstance(runner, Here):
        return Room(memory_bytes() // 2, runner.threads)
    limits = ask_workers(runner.client, _limits, wait=runner.wait)
    asked = dask.config.get("dforest.memory_per_task", None)
    if asked is not None:
        threads = min(limit.threads for limit in limits.values())
        return Room(asked * threads, threads)
    crowd = collections.Counter(limit.host for limit in limits.values())
    rooms = {}
    for worker, limit in limits.items():
        whole = limit.own or limit.machine // crowd[limit.host]
        total = int(whole * limit.share) - BASE
        if total <= 0:
            raise SpecError(
                f"worker {worker}: its memory limit is {whole:,} bytes, of which tasks may use "
                f"{limit.share:.0%}, but the interpreter alone takes {BASE:,}; give it more"
            )
        rooms[worker] = Room(total, limit.threads)
    return min(rooms.values(), key=lambda room: (room.per_task, room.total))


class _Limits(NamedTuple):
    own: int | None  # bytes, if Dask was told
    share: float  # of them before the worker pauses
    machine: int  # bytes of the machine or container
    threads: int
    host: str


def _limits(dask_worker: Worker) -> _Limits:
    """Asked on each worker; Dask gives the worker by the argument's name."""
    memory = dask_worker.memory_manager
    share = memory.memory_pause_fraction or 1.0
    threads = dask_worker.state.nthreads
    return _Limits(memory.memory_limit, share, memory_bytes(), threads, socket.gethostname())
