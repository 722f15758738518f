"""Work as steps: what each will cost is said before any is done."""

import pathlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dforest.errors import SpecError
from dforest.run.memory import Room


@dataclass(frozen=True)
class Work:
    """What a step may use."""

    folder: pathlib.Path  # for results
    working: pathlib.Path  # for receipts; removed when the run is finished
    fingerprint: str  # of the request
    client: Any  # distributed.Client, or None for this process


@dataclass(frozen=True)
class Step:
    """A part of a job whose results are kept, so that it is never done twice."""

    name: str
    do: Callable[[Work], dict[str, Any]]  # results, as JSON can hold them
    tasks: int
    reads: int  # bytes
    writes: int  # bytes
    memory: int  # bytes one task holds at worst, with its part of what the tasks of a process share


class Budget(NamedTuple):
    """Memory that tasks may use, and who says so."""

    room: Room
    of: str | None  # None: not known before the workers run; the room is this machine's
    more: str = ""  # how to get more of it


def as_plan(steps: Sequence[Step], budget: Budget, done: Sequence[str] = ()) -> dict[str, Any]:
    """The plan as it is printed: one entry a step, totals of what is left to do, and the limit."""
    left = [step for step in steps if step.name not in done]
    return {
        "steps": [
            {
                "name": step.name,
                "tasks": step.tasks,
                "bytes_read": step.reads,
                "bytes_written": step.writes,
                "memory_per_task": step.memory,
                "done": step.name in done,
            }
            for step in steps
        ],
        "tasks": sum(step.tasks for step in left),
        "bytes_read": sum(step.reads for step in left),
        "bytes_written": sum(step.writes for step in left),
        "memory_per_task": max((step.memory for step in left), default=0),
        "memory_limit": budget.room.per_task if budget.of else None,
        "memory_limit_of": budget.of,
    }


def check_budget(
    steps: Sequence[Step], budget: Budget, done: Sequence[str] = (), smaller: str = ""
) -> None:
    """Refuse a plan whose largest task does not fit; ``smaller`` says how to ask for less.

    Raises
    ------
    SpecError
        Names the step, its tasks, bytes and memory, the limit, and the way out.
    """
    limit = budget.room.per_task
    for step in steps:
        if budget.of and step.name not in done and step.memory > limit:
            ways = ", or ".join(way for way in (smaller, budget.more) if way)
            raise SpecError(
                f"step {step.name}: {step.tasks} tasks that read {as_size(step.reads)} and write "
                f"{as_size(step.writes)} would take {as_size(step.memory)} of memory each, but "
                f"{budget.of} allows {as_size(limit)}; {ways}"
            )


def as_size(n_bytes: float) -> str:
    """Bytes for people.

    >>> as_size(900), as_size(1536), as_size(5e9)
    ('900 B', '1.5 KiB', '4.7 GiB')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} B" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


def mean_and_spread(values: Sequence[float]) -> dict[str, float]:
    """Mean, and standard deviation, of one number for each fold.

    >>> mean_and_spread([1.0, 2.0, 3.0])
    {'mean': 2.0, 'spread': 1.0}
    """
    return {"mean": statistics.fmean(values), "spread": statistics.stdev(values)}
