"""What every benchmark needs: fair timing, a table, peak memory."""

import concurrent.futures
import multiprocessing
import pathlib
import time

import numpy as np

Row = dict[str, str | int | float]  # one line of a table: column -> what stands there


def worked(function, *args, **kwargs):
    """Call once: (seconds that this thread worked, answer).

    Seconds a core, fair on a busy machine; what other threads do is not counted, so give the
    function ``n_jobs=1``.
    """
    start = time.thread_time()
    answer = function(*args, **kwargs)
    return time.thread_time() - start, answer


def timed(function, *args, **kwargs):
    """Call once: (seconds on the wall, answer)."""
    start = time.perf_counter()
    answer = function(*args, **kwargs)
    return time.perf_counter() - start, answer


def in_turn(*functions, repeats: int = 5) -> np.ndarray:
    """Seconds worked by each function, (repeats, functions), taken in turn: A B C A B C ...

    So whatever troubles the machine troubles all alike. All are called once before, untimed, to
    compile and to warm up.
    """
    for function in functions:
        function()
    return np.array([[worked(function)[0] for function in functions] for _ in range(repeats)])


def ratio(seconds, others) -> float:
    """Median over rounds of how many times ``others`` the ``seconds`` are."""
    return float(np.median(seconds / others))


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
