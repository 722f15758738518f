"""One writer at a time: a kernel lock, which a killed owner gives back at once."""

import contextlib
import fcntl
import json
import os
import pathlib
import socket
import time

from dforest.errors import LockedError, StoreError
from dforest.store.disk import writing

GLANCE = 0.05  # seconds; one who asks `is_locked` holds the lock for less


class Lock:
    """Hold an output path against every other writer.

    The lock is a small file beside the path (``.NAME.lock``), so it can be taken before the path
    exists. The kernel drops it when its owner ends, however it ends.

    Parameters
    ----------
    path : path-like
        The folder that will be written.

    Raises
    ------
    LockedError
        From `acquire`, if another writer holds it; names the writer's process and host.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Lock(folder):
    ...     Lock(folder).acquire()
    Traceback (most recent call last):
    dforest.errors.LockedError: ...is being written by process ... on ...
    """

    def __init__(self, path):
        self.path = pathlib.Path(path).resolve()
        if not self.path.name:
            raise StoreError(f"{self.path} cannot be written as a whole; name a folder in it")
        self.file = self.path.with_name(f".{self.path.name}.lock")
        self._handle: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._handle is not None

    def acquire(self) -> "Lock":
        """Take the lock now, or raise `LockedError`."""
        with writing(self.path):
            self.file.parent.mkdir(parents=True, exist_ok=True)
        while self._handle is None:
            with writing(self.path):
                handle = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _take(handle)
            except BlockingIOError:
                holder = _holder(handle)
                os.close(handle)
                raise LockedError(
                    f"{self.path} is being written by {holder}; wait for it, or write elsewhere"
                ) from None
            except OSError as error:
                os.close(handle)
                raise StoreError(f"{self.file}: this file system cannot lock ({error})") from error
            if _is_still(handle, self.file):
                self._handle = handle
            else:  # its last holder unlinked it between our open and our lock
                os.close(handle)
        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        with contextlib.suppress(OSError):  # a full disk: the lock holds, though without a name
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, json.dumps(who).encode(), 0)
        return self

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""
        if self._handle is not None:
            self.file.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = None

    def __enter__(self):
        return self.acquire()

    def __exit__(self, *_):
        self.release()


def is_locked(path) -> bool:
    """Whether some process holds the `Lock` of ``path`` now; nothing is created to find out.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with Lock(folder):
    ...     is_locked(folder)
    True
    >>> is_locked(folder)
    False
    """
    try:
        handle = os.open(Lock(path).file, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(handle)
    return False


def _take(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(GLANCE)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still(handle: int, file) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(file))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    try:
        who = json.loads(os.pread(handle, 1000, 0))
        return f"process {who['pid']} on {who['host']}"
    except (ValueError, KeyError):
        return "another process"
