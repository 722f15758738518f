"""Cluster files: the conventional keys of Dask cluster files, and a small block of our own."""

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from dforest.errors import SpecError
from dforest.jobs.keys import Keys
from dforest.jobs.plan import Budget
from dforest.jobs.reading import check, read_yaml
from dforest.run.client import ClusterSpec, configured_address, connect, place
from dforest.run.memory import Room, room_of

UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


class Wanted(Keys):
    """What dforest wants of the cluster."""

    n_workers: int = Field(
        default=1, ge=1, description="Workers to wait for before the first task."
    )
    wait: float = Field(default=60.0, gt=0, description="Seconds to wait for them.")
    patience: float = Field(
        default=14_400.0, gt=0, description="Seconds in which one task must end."
    )
    memory_per_task: int | str | None = Field(
        default=None, description="What one task may use, as 2GiB; a plan above it is refused."
    )


class ClusterFile(Keys):
    """Any Dask cluster class by name, what it is called with, and what we want of it."""

    version: Literal[1] = Field(default=1, description="Of this form.")
    module: str = Field(description="As dask.distributed.")
    class_name: str = Field(alias="class", description="As LocalCluster, or Client.")
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    dforest: Wanted = Wanted()


def read_cluster(path: str | os.PathLike) -> ClusterSpec:
    """Read and check a cluster file; nothing is started.

    Raises
    ------
    SpecError
        Names the file and the key.
    """
    read = check(ClusterFile, read_yaml(path), path)
    wanted = read.dforest
    try:
        return ClusterSpec(
            module=read.module,
            class_name=read.class_name,
            args=read.args,
            kwargs=read.kwargs,
            n_workers=wanted.n_workers,
            wait=wanted.wait,
            patience=wanted.patience,
            memory_per_task=as_bytes(wanted.memory_per_task),
        )
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None


def as_bytes(size: int | str | None) -> int | None:
    """Read a size with its unit.

    >>> as_bytes("2GiB"), as_bytes("1.5 kB"), as_bytes(512)
    (2147483648, 1500, 512)
    """
    if size is None or isinstance(size, int):
        return size
    match = re.fullmatch(r"\s*(\d+\.?\d*)\s*([A-Za-z]+)\s*", size)
    unit = UNITS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise SpecError(f"dforest.memory_per_task: a size like 2GiB or 500MB, got {size!r}")
    return int(float(match[1]) * unit)


def cluster_at(where: str | None) -> str | ClusterSpec | None:
    """Tell what ``--cluster`` names: an address, a file, or nothing.

    Nothing said, ``DASK_SCHEDULER_ADDRESS`` is followed if it is set.
    """
    if where is None:
        return configured_address()
    return where if "://" in where else read_cluster(where)


@contextlib.contextmanager
def client_at(where: str | ClusterSpec | None) -> Iterator[Any]:
    """Connect for as long as the context lasts; None when the work is done in this process."""
    if where is None:
        yield None
        return
    with connect(where) as client:
        yield client


def budget_before(where: str | ClusterSpec | None, threads: int | None) -> Budget:
    """Memory for tasks as far as it can be known without starting anything.

    A scheduler that runs already is asked.
    """
    if isinstance(where, ClusterSpec) and where.memory_per_task is not None:
        return _as_said(Room(where.memory_per_task, 1))
    if isinstance(where, ClusterSpec) and not where.runs_already:
        return Budget(room_of(place(n_jobs=threads)), None)
    with client_at(where) as client:
        return budget_of(where, client, threads)


def budget_of(where: str | ClusterSpec | None, client: Any, threads: int | None) -> Budget:
    """Memory for the tasks of a cluster that runs, or of this process."""
    room = room_of(place(client, threads))
    if isinstance(where, ClusterSpec) and where.memory_per_task is not None:
        return _as_said(room)
    if client is not None:
        more = "give workers more memory or fewer threads"
        return Budget(room, "the memory limit of the weakest worker", more)
    more = "use fewer threads, or a cluster with more memory"
    return Budget(room, "half of this process's memory", more)


def _as_said(room: Room) -> Budget:
    return Budget(room, "memory_per_task of the cluster file", "raise it")
