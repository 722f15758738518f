"""A pass: one sweep over a grid of blocks. It says what to do; a runner says where.

The runners are `dforest.run.here.Here` and `dforest.run.cluster.Cluster`; both give the same bits,
because the parts of a group are merged by a binary tree that depends on their number alone.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from dforest.errors import DforestError, RunError, SpecError

Part = dict[str, np.ndarray]
T = TypeVar("T")


class Keep(Protocol):
    """Where finished groups are kept; it travels to workers, so it holds only paths and facts."""

    def read(self, key: str) -> Part | None:
        """Return the part that was kept under ``key``; None when there is none."""

    def write(self, key: str, part: Part) -> Any:
        """Keep ``part``, whole or not at all; a key may be written twice, with equal bits."""


@dataclass(frozen=True)
class Pass:
    """Step every block of every group, and merge the parts of each group in block order.

    ``run(job)`` of a runner iterates over one merged part per group, in the order of groups.

    Parameters
    ----------
    name : str
        Words of letters with dashes; what the dashboard shows and receipts are filed under.
    step : callable, block -> part
        A module-level function, or a partial of one over paths and small facts, so that it travels
        to workers by name. It may run more than once for a block (a worker died): it must then
        give the same bits. A part is a dict of arrays; it should be small, as it comes back.
    grid : sequence of groups, each a sequence of blocks
        A block is small: a slice, numbers, a tuple of them. Work is done in this order.
    merge : callable, (part, part) -> part
        Not allowed to change its arguments. Needed when a group has more than one block.
    keep : Keep, optional
        A group found there is not done again; a finished one is written by whoever finished it.
    bytes_of : callable, block -> int, optional
        Bytes that a block reads and writes, for progress; without it, answers are counted.

    Raises
    ------
    SpecError
        A bad name, a group without blocks, several blocks without a merge.

    Examples
    --------
    >>> from dforest.run.here import Here
    >>> def squares(rows):
    ...     return {"sum": np.square(np.arange(rows.start, rows.stop)).sum(keepdims=True)}
    >>> def add(a, b):
    ...     return {"sum": a["sum"] + b["sum"]}
    >>> job = Pass("add-squares", squares, [row_blocks(10, row_bytes=8, budget=100)], add)
    >>> [part["sum"] for part in Here(1).run(job)]
    [array([285])]
    """

    name: str
    step: Callable[[Any], Part]
    grid: Sequence[Sequence[Any]]
    merge: Callable[[Part, Part], Part] | None = None
    keep: Keep | None = None
    bytes_of: Callable[[Any], int] | None = None

    def __post_init__(self):
        if not re.fullmatch(r"[A-Za-z]+(-[A-Za-z]+)*", self.name):  # all that Dask shows of keys
            raise SpecError(f"pass name: must be words of letters with dashes, got {self.name!r}")
        for group, blocks in enumerate(self.grid):
            if len(blocks) == 0:
                raise SpecError(f"pass {self.name!r}: group {group} has no blocks; leave it out")
            if len(blocks) > 1 and self.merge is None:
                raise SpecError(
                    f"pass {self.name!r}: group {group} has {len(blocks)} blocks and no merge; "
                    "give one, or make each block a group"
                )

    @property
    def n_blocks(self) -> int:
        """Number of blocks in all groups."""
        return sum(map(len, self.grid))

    def key(self, group: int) -> str:
        """Name of a group's finished part."""
        return f"{self.name}-{group:06d}"

    def moved(self, answer: Part | None, *blocks: Any) -> int:
        """Bytes to count when ``blocks`` have ended, and with them maybe a group's ``answer``."""
        if self.bytes_of is not None:
            return sum(map(self.bytes_of, blocks))
        return 0 if answer is None else part_bytes(answer)

    def kept(self, group: int) -> Part | None:
        """Return the finished part of a group, if it is known from an earlier run."""
        return None if self.keep is None else self.keep.read(self.key(group))


def take(step: Callable[[Any], Part], block: Any, keep: Keep | None, key: str) -> Part:
    """Task of one block; with ``keep``, the block is its whole group."""
    with _failing_clearly(f"{key}, block {block!r:.60}"):
        part = step(block)
        if keep is not None:
            keep.write(key, part)
        return part


def join(merge: Any, left: Part, right: Part, keep: Keep | None, key: str) -> Part:
    """Task of one merge; with ``keep``, it is the last of its group."""
    with _failing_clearly(f"{key}, a merge"):
        part = merge(left, right)
        if keep is not None:
            keep.write(key, part)
        return part


@contextlib.contextmanager
def _failing_clearly(task: str) -> Iterator[None]:
    """Turn what a machine did to a task into an error of ours; bugs stay as they are."""
    try:
        yield
    except DforestError:
        raise
    except MemoryError as error:
        way_out = "use smaller blocks or fewer threads, or give more memory"
        raise RunError(f"task {task}: out of memory ({error}); {way_out}") from error
    except OSError as error:
        why = f"{type(error).__name__}: {error}"
        raise RunError(f"task {task}: {why}; mend that machine or disk, then run again") from error


class Fold(Generic[T]):
    """Merge ``n_parts`` parts, given in order, by the binary tree that depends on their number.

    Parts (or promises of parts) are paired like bits of a counter: no more than 1 + log2(n_parts)
    are held. ``merge(left, right, is_last)`` says how.

    >>> fold = Fold(5, lambda left, right, is_last: f"({left}{right})")
    >>> [fold.add(letter) for letter in "abcde"]
    [None, None, None, None, '(((ab)(cd))e)']
    """

    def __init__(self, n_parts: int, merge: Callable[[T, T, bool], T]):
        self._missing, self._merge = n_parts, merge
        self._held: list[tuple[int, T]] = []  # (parts below, part), the numbers falling

    def add(self, part: T) -> T | None:
        """Take the next part; the merged one comes back with the last, None before."""
        self._missing -= 1
        below, ended = 1, self._missing == 0
        while self._held and (ended or self._held[-1][0] == below):
            more, left = self._held.pop()
            part = self._merge(left, part, ended and not self._held)
            below += more
        self._held.append((below, part))
        return part if ended else None


def part_bytes(part: Part) -> int:
    """Size of a part's arrays in bytes."""
    return sum(np.asarray(array).nbytes for array in part.values())


def row_blocks(n_rows: int, row_bytes: int, budget: int, *, copies: int = 3) -> list[slice]:
    """Cut rows into the largest blocks of which ``copies`` fit into ``budget`` bytes.

    Three copies are what a step holds at worst: the stored block, its float64 form, the part.

    Raises
    ------
    SpecError
        Not even one row fits.

    Examples
    --------
    >>> row_blocks(10, row_bytes=8, budget=100)
    [slice(0, 4, None), slice(4, 8, None), slice(8, 10, None)]
    """
    size = int(budget // (copies * max(row_bytes, 1)))
    if size < 1:
        raise SpecError(
            f"memory per task: {budget:,} bytes, but one row takes {copies} x {row_bytes:,}; "
            "raise it, or store fewer features together"
        )
    return [slice(i, min(i + size, n_rows)) for i in range(0, n_rows, size)]
