"""The one door to numba: every compiled routine in dforest wears ``@jit``."""

import contextlib
import functools
import hashlib
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator

import numba
from numba.core import event
from numba.extending import intrinsic, overload  # noqa: F401

COMPILED = ("jit.py", "seeds.py", "tree", "distances")  # the rooms whose code numba compiles


def _source_stamp() -> str:
    """Digest of the compiled rooms: numba's own cache watches only a routine's own file."""
    here = pathlib.Path(__file__).parent
    digest = hashlib.sha256(numba.__version__.encode())
    for room in COMPILED:
        for path in sorted((here / room).rglob("*.py")) or [here / room]:
            if path.exists():
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> str:
    mine = os.path.join(tempfile.gettempdir(), f"dforest-jit-{os.getuid()}")  # never shared
    return os.path.join(os.environ.get("DFOREST_JIT_CACHE", mine), _source_stamp())


numba.config.CACHE_DIR = _cache_folder()

# Serial and GIL-free: the runner owns the threads. No fastmath: it may drop NaN tests and reorder
# sums, and a forest must come out the same on every machine.
jit = functools.partial(numba.njit, cache=True, nogil=True, fastmath=False)


@intrinsic
def fma(typing, x, y, z):
    """``x * y + z`` of three float64, rounded once: the same bits on every processor.

    To leave this to fastmath would fuse where a processor can, and round twice where it cannot.
    """
    double = numba.float64
    return double(double, double, double), lambda context, builder, sig, args: builder.fma(*args)


class _Compiling(event.Listener):
    def __init__(self, callback: Callable[[str], None]):
        self._callback = callback

    def on_start(self, event):
        self._callback(numba.config.CACHE_DIR)

    def on_end(self, event):
        pass


@contextlib.contextmanager
def compiling(callback: Callable[[str], None]) -> Iterator[None]:
    """Call ``callback(folder of compiled code)`` before each routine that is not there yet.

    It is called on the thread that is about to compile, which waits for it.
    """
    with event.install_listener("numba:compile", _Compiling(callback)):
        yield
