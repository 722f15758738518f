"""Work as steps: what each will cost is said before any is done."""

import pathlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dforest.errors import SpecError


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
    memory: int  # bytes one task holds at worst


def as_plan(steps: Sequence[Step], done: Sequence[str] = ()) -> dict[str, Any]:
    """The plan as it is printed: one entry a step, and the totals of what is left to do."""
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
    }


def check_budget(plan: dict[str, Any], budget: int | None) -> None:
    """Refuse a plan whose largest task does not fit.

    Raises
    ------
    SpecError
        Names the step, what it would take, what there is, and the way out.
    """
    for step in plan["steps"]:
        if budget is not None and not step["done"] and step["memory_per_task"] > budget:
            raise SpecError(
                f"step {step['name']}: a task would take {as_size(step['memory_per_task'])}, but "
                f"may take {as_size(budget)}; raise memory, or lower forest.pool_size"
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
