"""Tell whether this machine, and the cluster, are fit to run dforest."""

import pathlib
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from dforest.errors import DforestError, RunError
from dforest.jobs.cluster import client_at, cluster_at
from dforest.jobs.plan import as_size
from dforest.jobs.record import versions
from dforest.run.client import preflight
from dforest.run.here import Here
from dforest.seeds import scramble
from dforest.store.scratch import scratch_home

SPLITMIX64_OF_0 = 0xE220A8397B1DCDAF  # first number of the published generator with seed 0
SCARCE = 2**30  # bytes of scratch space below which a run of any size is in danger


def examine(where: str | None = None) -> dict[str, Any]:
    """Run every check; ``exit_code`` is 0 if all are well, else 75 (mend it, then try again)."""
    checks = {
        "versions": _versions,
        "compiled code": _cache,
        "scratch space": _scratch,
        "cluster": lambda: _cluster(where),
    }
    found = [_check(name, check) for name, check in checks.items()]
    is_well = all(one["ok"] for one in found)
    return {"checks": found, "exit_code": 0 if is_well else RunError.exit_code}


def _check(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "found": check()}
    except (DforestError, OSError) as error:
        return {"name": name, "ok": False, "found": str(error)}


def _versions() -> str:
    return ", ".join(f"{name} {version}" for name, version in versions().items())


def _cache() -> str:
    compiled: Any = scramble
    folder = pathlib.Path(compiled.stats.cache_path)
    if compiled(0) != SPLITMIX64_OF_0:
        raise RunError("compiled code gives wrong answers; reinstall numba")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return f"{folder} can be written"


def _scratch() -> str:
    folder = scratch_home()
    with tempfile.TemporaryFile(dir=folder):
        free = shutil.disk_usage(folder).free
    if free < SCARCE:
        raise RunError(
            f"{folder} has {as_size(free)} free, less than {as_size(SCARCE)}; "
            "make room, or set DFOREST_SCRATCH"
        )
    return f"{folder} has {as_size(free)} free"


def _cluster(where: str | None) -> str:
    cluster = cluster_at(where)
    if cluster is None:
        return f"none asked for; work runs on {Here().threads} processors of this machine"
    with client_at(cluster) as client, tempfile.TemporaryDirectory(dir=pathlib.Path()) as folder:
        preflight(client, folder)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        threads = sum(worker["nthreads"] for worker in workers.values())
        return f"{len(workers)} workers with {threads} threads at {client.scheduler.address}"
