"""What every benchmark needs: fair timing, a table, peak memory."""

import concurrent.futures
import multiprocessing
import pathlib
import time
from typing import NamedTuple

import numpy as np

Row = dict[str, str | int | float]  # one line of a table: column -> what stands there


class Paired(NamedTuple):
    """Two timings side by side."""

    ratio: float  # median over rounds of b / a: how many times faster a is
    a: float  # median seconds
    b: float


def paired(a, b, repeats: int = 5) -> Paired:
    """Time two functions in turn, A B A B ..., so that a noisy machine troubles both alike.

    Both are called once before, untimed, to compile and to warm up.
    """
    a(), b()
    seconds = np.array([[_seconds(a), _seconds(b)] for _ in range(repeats)])
    ratio = np.median(seconds[:, 1] / seconds[:, 0])
    return Paired(float(ratio), *map(float, np.median(seconds, axis=0)))


def timed(function, *args, **kwargs):
    """Call once: (seconds, answer)."""
    start = time.perf_counter()
    answer = function(*args, **kwargs)
    return time.perf_counter() - start, answer


def in_fresh_process(function, *args):
    """Call in a new process: (answer, its peak memory in bytes). Linux."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(_with_peak, function, *args).result()


def table(rows: list[Row]) -> str:
    """Plain text, one line a row; columns whose name begins with "ratio" come first."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    names.sort(key=lambda name: not name.startswith("ratio"))  # stable: the rest stay in order
    lines = [names] + [[_show(row.get(name, "")) for name in names] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_text = [any(isinstance(row.get(name), str) for row in rows) for name in names]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if left else cell.rjust(width)
            for cell, width, left in zip(line, widths, is_text, strict=True)
        ).rstrip()
        for line in lines
    )


def _seconds(function) -> float:
    return timed(function)[0]


def _with_peak(function, *args):
    answer = function(*args)
    # not ru_maxrss: it is inherited from the parent that started this process
    status = pathlib.Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return answer, int(peak) * 1024


def _show(value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if np.isnan(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
