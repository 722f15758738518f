"""What a run tells whoever listens: progress and timings. Without a listener it is silent.

The library never prints; the command line, a notebook or a report listens.
"""

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

_listeners: list[Callable[["Event"], None]] = []
_lock = threading.Lock()


@dataclasses.dataclass(frozen=True)
class Event:
    """One moment of a piece of work that is counted in equal parts."""

    name: str  # of the work, as in "grow-trees"
    kind: Literal["begin", "step", "end"]
    done: int  # parts finished so far; less than total at "end": it was stopped
    total: int
    seconds: float  # since "begin"
    bytes: int  # read and written so far, or of the answers received where that is not known
    kept: int = 0  # of those done, parts that an earlier run had finished; they took no work


@contextlib.contextmanager
def listening(callback: Callable[[Event], None]) -> Iterator[None]:
    """Call ``callback`` with every `Event` of this process while the context lasts.

    It is called on the thread that reports, which may be any; an error in it stops the work.

    Examples
    --------
    >>> seen = []
    >>> with listening(seen.append), progress("count-rows", total=3) as count:
    ...     count(2)
    >>> [(event.kind, event.done) for event in seen]
    [('begin', 0), ('step', 2), ('end', 2)]
    """
    with _lock:
        _listeners.append(callback)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(callback)


def emit(event: Event) -> None:
    """Tell every listener; none is called under the lock, so a listener may itself emit."""
    with _lock:
        listeners = tuple(_listeners)
    for listener in listeners:
        listener(event)


@contextlib.contextmanager
def progress(name: str, total: int) -> Iterator[Callable[..., None]]:
    """Count a piece of work: yields ``count(parts=1, n_bytes=0, *, kept=0)``.

    To be called from one thread; ``kept`` parts are those that were found done, beside ``parts``.
    "end" is told however the work ends, so that a bar is always closed.
    """
    start, done, moved, found = time.monotonic(), 0, 0, 0

    def tell(kind: Literal["begin", "step", "end"]) -> None:
        emit(Event(name, kind, done, total, time.monotonic() - start, moved, found))

    def count(parts: int = 1, n_bytes: int = 0, *, kept: int = 0) -> None:
        nonlocal done, moved, found
        done, moved, found = done + parts + kept, moved + n_bytes, found + kept
        tell("step")

    tell("begin")
    try:
        yield count
    finally:
        tell("end")
