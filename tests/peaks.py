"""Memory that this process takes, as the kernel counts it. Linux."""

import contextlib
import pathlib


@contextlib.contextmanager
def growth():
    """Yield a list that gets the bytes by which the process grew at its peak in this context."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    found, start = [], _status("VmRSS")
    yield found
    found.append(_status("VmHWM") - start)


def _status(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024
