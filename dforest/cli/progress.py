"""Progress on stderr: bars on a terminal, a plain line now and then elsewhere."""

import collections
import contextlib
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import rich.console
import rich.progress

from dforest.run.events import Event, listening

SHORT = 1.0  # seconds of a pass that is not worth a line
OFTEN, SELDOM, TENTH = 10.0, 60.0, 0.1  # a line for a tenth, at most so often; else one a minute


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show every pass that runs in the context, with its rate and the time left."""
    if sys.stderr.isatty():
        with _Bars() as bars, listening(bars):
            yield
    else:
        with listening(Lines()):
            yield


class Pace:
    """Rate of a pass by the later half of its parts: the first ones wait for workers and compilers.

    Parts that were found done count as done, and not for the rate.

    >>> pace = Pace()
    >>> pace(Event("grow-trees", "step", 1, 100, 30.0, 0))
    '1/100, 30 s each, 50 min left'
    >>> for done in range(2, 41):
    ...     text = pace(Event("grow-trees", "step", done, 100, 30.0 + done, 0))
    >>> text
    '40/100, 1.0/s, 60 s left'
    """

    def __init__(self):
        self._marks = collections.deque([(0.0, 0, 0)])  # seconds, parts worked on, bytes

    def __call__(self, event: Event) -> str:
        """Take note of an event; say how far the pass is."""
        worked = event.done - event.kept
        self._marks.append((event.seconds, worked, event.bytes))
        while len(self._marks) > 1 and self._marks[1][1] <= worked / 2:
            self._marks.popleft()
        since, before, moved = self._marks[0]
        seconds, parts = event.seconds - since, worked - before
        text = f"{event.done}/{event.total}"
        if parts > 0 and seconds > 0:
            left = (event.total - event.done) * seconds / parts
            text += f"{_rates(parts, event.bytes - moved, seconds)}, {_span(left)} left"
        return text


def in_all(event: Event) -> str:
    """Say how a pass went that is over.

    >>> in_all(Event("read", "end", 40, 40, 4.0, 10**9, kept=20))
    '40/40 in 4 s, 5.0/s, 250 MB/s, 20 found done'
    """
    worked = event.done - event.kept
    found = f", {event.kept} found done" if event.kept else ""
    rates = _rates(worked, event.bytes, event.seconds) if worked and event.seconds > 0 else ""
    stopped = "" if event.done == event.total else "stopped at "
    return f"{stopped}{event.done}/{event.total} in {_span(event.seconds)}{rates}{found}"


def _rates(parts: int, n_bytes: int, seconds: float) -> str:
    rate, flow = parts / seconds, n_bytes / seconds / 1e6
    text = f", {rate:.1f}/s" if rate >= 0.1 else f", {1 / rate:.0f} s each"
    return text + (f", {flow:.0f} MB/s" if flow >= 1 else "")


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@dataclass
class _Told:
    """What was last said of a pass."""

    share: float = 0.0
    seconds: float = 0.0
    pace: Pace = field(default_factory=Pace)


class Lines:
    """Writes a line when a pass has moved by a tenth, but not often, and one when it is over.

    >>> import io
    >>> out = io.StringIO()
    >>> lines = Lines(out)
    >>> for done in range(41):
    ...     kind = "step" if done else "begin"
    ...     lines(Event("grow-trees", kind, done, 40, done, 0))
    >>> lines(Event("grow-trees", "end", 40, 40, 40.0, 0))
    >>> print(out.getvalue(), end="")
    grow-trees 10/40, 1.0/s, 30 s left
    grow-trees 20/40, 1.0/s, 20 s left
    grow-trees 30/40, 1.0/s, 10 s left
    grow-trees 40/40 in 40 s, 1.0/s
    """

    def __init__(self, out=None):
        self._out = out
        self._told: dict[str, _Told] = collections.defaultdict(_Told)
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Take note of an event; called from any thread."""
        with self._lock:
            if event.kind == "end":
                self._told.pop(event.name, None)
                if event.seconds >= SHORT and event.total:
                    self._write(event, in_all(event))
            elif event.kind == "step":
                told, share = self._told[event.name], event.done / max(event.total, 1)
                text, waited = told.pace(event), event.seconds - told.seconds
                has_moved = share - told.share > TENTH - 1e-9 or not told.seconds
                is_due = waited >= (OFTEN if has_moved else SELDOM)
                if is_due and event.done < event.total:
                    told.share, told.seconds = share, event.seconds
                    self._write(event, text)

    def _write(self, event: Event, text: str) -> None:
        out = self._out or sys.stderr
        out.write(f"{event.name} {text}\n")
        out.flush()


class _Bars:
    """One bar for each pass that runs; a finished pass leaves its bar's place to the next."""

    def __init__(self):
        self._bars = rich.progress.Progress(
            rich.progress.TextColumn("{task.description:<16}"),
            rich.progress.BarColumn(),
            rich.progress.TextColumn("{task.fields[counts]}"),
            console=rich.console.Console(stderr=True),
            transient=True,
        )
        self._tasks: dict[str, tuple[rich.progress.TaskID, Pace]] = {}
        self._lock = threading.Lock()

    def __enter__(self):
        self._bars.start()
        return self

    def __exit__(self, *_):
        self._bars.stop()

    def __call__(self, event: Event) -> None:
        with self._lock:
            if event.kind == "end":
                if event.name in self._tasks:
                    self._bars.remove_task(self._tasks.pop(event.name)[0])
                return
            if event.name not in self._tasks:
                task = self._bars.add_task(event.name, total=event.total, counts="")
                self._tasks[event.name] = task, Pace()
            task, pace = self._tasks[event.name]
            self._bars.update(task, completed=event.done, counts=pace(event))
