"""The moments of a writer: what the disk holds before each change, and a disk that refuses one.

A moment is when this process is about to change something below a folder: to open a file for
writing, to rename, remove or link one, to make a folder. A process that is killed then leaves the
disk as it is at that moment, so a copy of the folder is what its successor finds; the kernel gives
back its lock, as no one holds the lock of a copy.
"""

import contextlib
import errno
import functools
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link"}
NEED_SPACE = {"open", "os.rename", "os.mkdir", "os.link"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_watchers: list[Callable[[str, tuple], None]] = []


def snapshots(folder, into, write) -> list[pathlib.Path]:
    """Copies of ``folder`` at each moment of ``write()``, without repetition.

    Where a file is about to be renamed there is one more copy, in which it has half of its bytes.
    """
    copies: list[pathlib.Path] = []
    known: set = set()

    def keep(event: str, args: tuple) -> None:
        _copy(folder, into, copies, known)
        source = pathlib.Path(os.fsdecode(args[0])) if event == "os.rename" else None
        if source is not None and source.is_file():
            whole = source.read_bytes()
            _copy(
                folder, into, copies, known, (source.relative_to(folder), whole[: len(whole) // 2])
            )

    with watching(folder, keep):
        write()
    return copies


def n_moments(folder, write) -> int:
    """How many moments ``write()`` has that need space on the disk."""
    seen: list[str] = []
    with watching(folder, lambda event, args: seen.append(event)):
        write()
    return sum(event in NEED_SPACE for event in seen)


@contextlib.contextmanager
def full_at(moment: int, folder) -> Iterator[None]:
    """Refuse one change for want of space."""
    count = iter(range(1 << 30))

    def refuse(event: str, args: tuple) -> None:
        if event in NEED_SPACE and next(count) == moment:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watching(folder, refuse):
        yield


@contextlib.contextmanager
def watching(folder, tell: Callable[[str, tuple], None]) -> Iterator[None]:
    """Call ``tell`` before each change below the folder; not for what it does itself."""
    root, own, turn = str(folder), threading.local(), threading.Lock()

    def watch(event: str, args: tuple) -> None:
        if getattr(own, "is_telling", False):
            return
        if not (event in CHANGES or (event == "open" and args[2] & WRITING)):
            return
        if not isinstance(args[0], str | bytes | os.PathLike):  # a file that is open already
            return
        path = os.fsdecode(args[0])
        if path.startswith(root) or not os.path.isabs(path):  # relative: of a folder being removed
            own.is_telling = True
            try:
                with turn:  # zarr writes from several threads
                    tell(event, args)
            finally:
                own.is_telling = False

    _install()
    _watchers.append(watch)
    try:
        yield
    finally:
        _watchers.remove(watch)


def _copy(folder, into, copies, known, instead=None) -> None:
    held = _contents(pathlib.Path(folder))
    if instead is not None:
        held[instead[0]] = instead[1]
    state = frozenset(held.items())
    if state in known:
        return
    known.add(state)
    copy = pathlib.Path(into) / f"{len(copies):04d}"
    copy.mkdir()
    for name, content in sorted(held.items()):
        if content is None:
            (copy / name).mkdir()
        else:
            (copy / name).write_bytes(content)
    copies.append(copy)


def _contents(folder: pathlib.Path) -> dict[pathlib.Path, bytes | None]:
    """Bytes of each file below a folder, None for a folder."""
    while True:
        try:
            return {
                path.relative_to(folder): None if path.is_dir() else path.read_bytes()
                for path in folder.rglob("*")
            }
        except FileNotFoundError:  # another thread had just begun to rename it
            continue


@functools.cache
def _install() -> None:
    """Listen to Python's audit events, for good: there is no way to stop."""
    sys.addaudithook(lambda event, args: [watch(event, args) for watch in tuple(_watchers)])
