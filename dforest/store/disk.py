"""What a disk does to us, said in one line."""

import contextlib
import errno
import os
import shutil

from dforest.errors import DforestError, RunError, StoreError

MISTAKEN = (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)  # no retry


@contextlib.contextmanager
def writing(what):
    """Turn an error of the operating system into one of ours that names what was being written.

    A path that can never be written is a `StoreError`, all else a `RunError`.

    >>> with writing("out/z"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    dforest.errors.RunError: cannot write out/z: No space left on device; mend that and run again
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, DforestError):
            raise
        reason = _reason(error)
        if error.errno in MISTAKEN:
            raise StoreError(f"cannot write {what}: {reason}; give another path") from error
        raise RunError(f"cannot write {what}: {reason}; mend that and run again") from error


@contextlib.contextmanager
def reading(what):
    """Turn an error of the operating system into a `StoreError` that names what was being read."""
    try:
        yield
    except OSError as error:
        if isinstance(error, DforestError):
            raise
        raise StoreError(f"cannot read {what}: {_reason(error)}; restore it from a copy") from error


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error):  # of a tree: many, each (from, to, why)
        return str(error.args[0][0][-1])
    return error.strerror or str(error)


def remove_tree(folder) -> None:
    """Remove a folder as well as can be; a thread that still writes into it may need two turns."""
    for _ in range(3):
        shutil.rmtree(folder, ignore_errors=True)


def link_or_copy(source, target) -> None:
    """Give a file a second name; where the file system has no links, copy it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
