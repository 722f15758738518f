"""What a disk does to us, said in one line."""

import contextlib

from dforest.errors import DforestError, RunError


@contextlib.contextmanager
def writing(what):
    """Turn an error of the operating system into a `RunError` that names what was being written.

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
        raise RunError(f"cannot write {what}: {reason}; mend that and run again") from error
