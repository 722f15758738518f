"""What goes wrong is decided in advance: a table of which block fails on which attempt, and how.

Attempts are counted in files, so it does not matter in which process a block is tried. A pass is
changed as a whole (its step and its grid), so that the code that runs it knows nothing of this.
"""

import contextlib
import dataclasses
import errno
import functools
import itertools
import os
import pathlib
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from unittest import mock

from distributed import get_worker

from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.passes import Part, Pass

ERRORS = ("disk error", "out of memory", "late disk error")  # one of ours comes of it
KILLS = ("kill", "late kill", "torn kill")  # late: the work is done, but nobody is told
QUIET = ("sleep", "restart")  # nothing comes of it; restart: as when a batch system's time is over


@dataclass(frozen=True)
class Faults:
    """A table of faults, for all passes of all runs that share a folder.

    Parameters
    ----------
    folder : path-like
        Where attempts are counted.
    table : dict of (pass name, block number) to events
        What happens on attempt 1, 2, ... of a block; afterwards all is well. Blocks are numbered
        through all groups of a pass.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> faults = Faults(tempfile.mkdtemp(), {("add", 1): ["disk error"]})
    >>> job = Pass("add", lambda block: {"x": np.array([block])}, [[7], [8]])
    >>> with faults.in_all_passes():
    ...     list(Here(1).run(job))
    Traceback (most recent call last):
    dforest.errors.RunError: task add-000001, block 8: ...
    >>> with faults.in_all_passes():
    ...     list(Here(1).run(job))
    [{'x': array([7])}, {'x': array([8])}]
    """

    folder: str | os.PathLike
    table: dict[tuple[str, int], list[str]]

    @contextlib.contextmanager
    def in_all_passes(self) -> Iterator[None]:
        """Disturb every pass that this process runs, here or on a cluster."""
        with contextlib.ExitStack() as stack:
            for kind in (Here, Cluster):
                patch = mock.patch.object(kind, "run", self._through(kind.run))
                stack.enter_context(patch)
            yield

    def _through(self, run):
        def disturbed(runner, job: Pass):
            return run(runner, self.disturb(job))

        return disturbed

    def disturb(self, job: Pass) -> Pass:
        """The same pass, in which things go wrong."""
        count = itertools.count()
        grid = [[_Numbered(next(count), block) for block in blocks] for blocks in job.grid]
        step = functools.partial(_disturbed, step=job.step, name=job.name, faults=self)
        size = job.bytes_of and functools.partial(_size, bytes_of=job.bytes_of)
        return dataclasses.replace(job, step=step, grid=grid, bytes_of=size)

    def next_event(self, name: str, number: int) -> str | None:
        """What shall happen on this attempt, which is counted."""
        for attempt, event in enumerate(self.table.get((name, number), ())):
            try:
                mark = pathlib.Path(self.folder) / f"{name}-{number}-{attempt}"
                os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
                return event
            except FileExistsError:
                continue
        return None

    def n_happened(self) -> int:
        """How many faults there have been."""
        return len(os.listdir(self.folder))


@dataclass(frozen=True)
class _Numbered:
    """A block, and its number in the whole pass."""

    number: int
    block: Any

    def __repr__(self):
        return repr(self.block)


def _size(numbered: _Numbered, *, bytes_of) -> int:
    return bytes_of(numbered.block)


def _disturbed(numbered: _Numbered, *, step, name: str, faults: Faults) -> Part:
    event = faults.next_event(name, numbered.number)
    match event:
        case "disk error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        case "out of memory":
            raise MemoryError
        case "kill":
            _die()
        case "sleep":
            time.sleep(0.1)
        case "restart":
            worker = get_worker()
            worker.loop.add_callback(worker.close_gracefully, restart=True)
    with mock.patch("os.replace", _tear) if event == "torn kill" else contextlib.nullcontext():
        part = step(numbered.block)
    match event:
        case "late disk error":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        case "late kill" | "torn kill":  # torn: the step renamed nothing
            _die()
    return part


def _tear(source, target) -> None:
    """Die before a file gets its name, with half of its bytes on the disk."""
    os.truncate(source, os.path.getsize(source) // 2)
    _die()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
