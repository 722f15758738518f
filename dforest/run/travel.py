"""Whether a thing of the user's can be sent to workers."""

from typing import Any

import cloudpickle  # what Dask itself falls back on; without Dask's own log of the failure

from dforest.errors import SpecError


def check_travels(thing: Any, what: str) -> None:
    """Refuse what cannot be pickled; lambdas and functions of a notebook can.

    Raises
    ------
    SpecError
        Names ``what``, and why.

    Examples
    --------
    >>> check_travels(lambda x, y: 0.0, "distance")
    """
    try:
        cloudpickle.dumps(thing)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise SpecError(
            f"{what} cannot be sent to workers ({said:.200}); make it a function that holds no "
            "locks, files or clients, or compute without a client"
        ) from None
