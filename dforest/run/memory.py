"""How much memory there is."""

import resource

from distributed.system import memory_limit  # obeys the limits of a container


def memory_bytes() -> int:
    """Bytes that this process may use: of the machine, its container, or its own limits.

    >>> memory_bytes() > 0
    True
    """
    own = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min([memory_limit(), *(limit for limit in own if limit != resource.RLIM_INFINITY)])
