"""What can go wrong, by who can mend it.

* DforestError
  - DataError       the arrays do not fit together          (mend the data)
  - SpecError       a parameter, job or cluster file is wrong (mend the request)
  - StoreError      a folder is not what it should be       (mend the path)
  - NotFittedError  a model was asked before it learned     (mend the order of calls)
  - LockedError     another run holds the output            (wait for it)
  - RunError        the cluster or a machine failed us      (try again later)

Each message is one line: the thing, its value, the limit, and the way out.
"""

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError


class DforestError(Exception):
    """Root of every error that dforest raises on purpose; ``exit_code`` is the command line's."""

    exit_code = 2


class DataError(DforestError, ValueError):
    """Arrays whose shapes, dtypes or values do not fit together."""


class SpecError(DforestError, ValueError):
    """A parameter, job file or cluster file that asks for something impossible; names the key."""


class StoreError(DforestError, OSError):
    """A folder that is missing, unfinished, damaged, or of another format version."""


class NotFittedError(DforestError, _SklearnNotFittedError):
    """A model that was asked to predict before it was fitted."""


class LockedError(DforestError):
    """Another run is writing the same output."""

    exit_code = 3


class RunError(DforestError, RuntimeError):
    """A worker, a scheduler or a disk failed; the same request may succeed later."""

    exit_code = 75
