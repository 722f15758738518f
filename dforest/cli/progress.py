"""Progress on stderr: bars on a terminal, a plain line now and then elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

import rich.console
import rich.progress

from dforest.run.events import Event, listening

TENTH, PATIENCE = 0.1, 10.0  # a plain line at each tenth, or after so many seconds


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Show every pass that runs in the context, with its rate and the time left."""
    if sys.stderr.isatty():
        with _Bars() as bars, listening(bars):
            yield
    else:
        with listening(Lines()):
            yield


class Lines:
    """Writes a line when a pass has moved by a tenth, or at all after some seconds.

    >>> import io
    >>> out = io.StringIO()
    >>> lines = Lines(out)
    >>> lines(Event("grow-trees", "begin", 0, 40, 0.0, 0))
    >>> for done in range(1, 41):
    ...     lines(Event("grow-trees", "step", done, 40, done / 10, 0))
    >>> print(*out.getvalue().splitlines()[::5], sep=chr(10))
    grow-trees 4/40, 10.0/s, 4 s left
    grow-trees 24/40, 10.0/s, 2 s left
    """

    def __init__(self, out=None):
        self._out, self._told = out, {}  # pass -> (share, when) of its last line
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Take note of an event; called from any thread."""
        share, now = event.done / max(event.total, 1), time.monotonic()
        with self._lock:
            last, when = self._told.setdefault(event.name, (0.0, now))
            is_due = share - last > TENTH - 1e-9 or (share > last and now - when >= PATIENCE)
            if event.kind == "step" and is_due:
                self._told[event.name] = share, now
                out = self._out or sys.stderr
                out.write(f"{event.name} {_counts(event)}\n")
                out.flush()
            elif event.kind == "end":
                self._told.pop(event.name, None)


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
        self._tasks: dict[str, rich.progress.TaskID] = {}
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
                    self._bars.remove_task(self._tasks.pop(event.name))
                return
            if event.name not in self._tasks:
                task = self._bars.add_task(event.name, total=event.total, counts="")
                self._tasks[event.name] = task
            task = self._tasks[event.name]
            self._bars.update(task, completed=event.done, counts=_counts(event))


def _counts(event: Event) -> str:
    text = f"{event.done}/{event.total}"
    if not event.done or event.seconds <= 0:
        return text
    rate = event.done / event.seconds
    text += f", {rate:.1f}/s" if rate >= 0.1 else f", {1 / rate:.0f} s each"
    if event.bytes > 1e6:
        text += f", {event.bytes / event.seconds / 1e6:.0f} MB/s"
    return f"{text}, {(event.total - event.done) / rate:.0f} s left"
