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
        reason = error.strerror or str(error)
        if error.errno in MISTAKEN:
            raise StoreError(f"cannot write {what}: {reason}; give another path") from error
        raise RunError(f"cannot write {what}: {reason}; mend that and run again") from error


def link_or_copy(source, target) -> None:
    """Give a file a second name; where the file system has no links, copy it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
