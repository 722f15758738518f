"""Where a pass shall run: find the active client, or make one from an address or cluster file."""

import contextlib
import functools
import importlib
import ipaddress
import os
import pathlib
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import dask
import distributed
from distributed import Client, LocalCluster, get_worker
from distributed.deploy import Cluster as AnyCluster

from dforest.errors import RunError, SpecError
from dforest.run.cluster import Cluster, worker_threads
from dforest.run.here import Here

MUST_AGREE = ("dforest", "numpy", "numba", "zarr")  # else the same task may give other bits


@dataclass(frozen=True)
class ClusterSpec:
    """The values of a cluster file: any Dask cluster class, and what we want of it.

    Parameters
    ----------
    module, class_name : str
        As in ``distributed`` and ``LocalCluster``; ``distributed`` and ``Client`` for a scheduler
        that runs already (its address the first of ``args``, or ``DASK_SCHEDULER_ADDRESS``).
    args, kwargs
        Given to the class.
    n_workers : int
        Workers to wait for before the first task.
    wait : float
        Seconds to wait for them; later, seconds that all may be gone at once.
    patience : float
        Seconds in which at least one task must end.
    memory_per_task : int, optional
        Bytes that one task may use, whatever the workers' limits allow; plans are made by it, and
        what is chosen to fit into memory (`dforest.run.memory.room_of`).

    Raises
    ------
    SpecError
        A limit that is not positive.
    """

    module: str
    class_name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    n_workers: int = 1
    wait: float = 60.0
    patience: float = 14_400.0
    memory_per_task: int | None = None

    @property
    def runs_already(self) -> bool:
        """Whether it names a scheduler to connect to, rather than a cluster to start."""
        return self.class_name == "Client"

    def __post_init__(self):
        for name in ("n_workers", "wait", "patience", "memory_per_task"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SpecError(f"dforest.{name}: must be more than 0, got {value!r}")


def place(client: Client | None = None, n_jobs: int | None = None) -> Here | Cluster:
    """Choose the runner: the given client's cluster, else the active client's, else this process.

    Inside a task of a Dask worker everything is serial, whatever is asked. No client is created.

    Parameters
    ----------
    client : distributed.Client, optional
    n_jobs : int, optional
        Threads of this process; a cluster has its own.

    Raises
    ------
    SpecError
        ``client`` is none, is asynchronous, or is closed; ``n_jobs`` is no number of threads.

    Examples
    --------
    >>> place(n_jobs=2)
    Here(n_jobs=2)
    """
    if _is_inside_worker():
        return Here(1)
    here = Here(n_jobs)  # checked even where it is not used
    if client is None:
        client = _active_client()
        return here if client is None else Cluster(client)
    if not isinstance(client, Client):
        raise SpecError(
            f"client: must be a distributed.Client, got {type(client).__name__}; "
            "`dforest.run.client.connect` makes one from an address"
        )
    if client.asynchronous:
        raise SpecError("client: is asynchronous; give one made with asynchronous=False")
    if client.status != "running":
        raise SpecError(f"client: is {client.status}; connect it again")
    return Cluster(client)


def _is_inside_worker() -> bool:
    try:
        get_worker()
    except ValueError:
        return False
    return True


def _active_client() -> Client | None:
    try:
        client = Client.current()
    except ValueError:
        return None
    return client if client.status == "running" and not client.asynchronous else None


def configured_address() -> str | None:
    """Return ``DASK_SCHEDULER_ADDRESS``, or what Dask's configuration says in its place."""
    return dask.config.get("scheduler-address", None)


@contextlib.contextmanager
def connect(where: str | ClusterSpec | None, timeout: float | None = None) -> Iterator[Client]:
    """Make the active client, start what it needs, and stop all that when the context ends.

    Parameters
    ----------
    where : str, ClusterSpec or None
        ``"tcp://host:8786"`` (``tls://`` works with Dask's own TLS configuration), or the values of
        a cluster file; None is the `configured_address`.
    timeout : float, optional
        Seconds to wait for an answer, and then for the workers; by default the spec's ``wait``.

    Raises
    ------
    SpecError
        No address, no such class, arguments that it refuses, a dashboard open to the network.
    RunError
        Nobody answers, or too few workers come in time.
    """
    spec = where
    if not isinstance(spec, ClusterSpec):
        spec = ClusterSpec("distributed", "Client", args=() if where is None else (where,))
    wait = spec.wait if timeout is None else timeout
    limits = {
        "dforest.wait": wait,
        "dforest.patience": spec.patience,
        "dforest.memory_per_task": spec.memory_per_task,
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(limits))
        client = stack.enter_context(_started(spec, wait, stack))
        await_workers(client, spec.n_workers, wait)
        yield client


def _started(spec: ClusterSpec, wait: float, stack: contextlib.ExitStack) -> Client:
    cls, name = _class_of(spec), f"{spec.module}.{spec.class_name}"
    if cls is Client:
        return _client_at(spec, wait)
    kwargs = dict(spec.kwargs)
    if issubclass(cls, LocalCluster):
        kwargs.setdefault("dashboard_address", "127.0.0.1:0")
        _check_loopback(kwargs)
    try:
        cluster = stack.enter_context(cls(*spec.args, **kwargs))
        return Client(cluster, timeout=wait)
    except (TypeError, ValueError) as error:
        raise SpecError(f"{name}: refuses its args or kwargs ({_line(error)})") from error
    except (OSError, RuntimeError) as error:
        cause = error.__cause__ or error  # Dask says "failed to start", its cause says why
        if isinstance(cause, TypeError | ValueError):
            raise SpecError(f"{name}: refuses its args or kwargs ({_line(cause)})") from error
        raise RunError(f"{name}: did not start ({_line(cause)})") from error


def _class_of(spec: ClusterSpec) -> type:
    try:
        cls = getattr(importlib.import_module(spec.module), spec.class_name, None)
    except ImportError as error:
        raise SpecError(f"module: {spec.module!r} cannot be imported ({_line(error)})") from error
    if cls is Client or (isinstance(cls, type) and issubclass(cls, AnyCluster)):
        return cls
    raise SpecError(
        f"class: {spec.module}.{spec.class_name} is no Dask cluster class; "
        "distributed.LocalCluster and dask_jobqueue.SLURMCluster are, or distributed.Client"
    )


def _client_at(spec: ClusterSpec, wait: float) -> Client:
    address = (spec.args or (configured_address(),))[0]
    if not isinstance(address, str) or "://" not in address:
        raise SpecError(
            f"scheduler address: must be like tcp://host:8786, got {address!r}; "
            "give it, or set DASK_SCHEDULER_ADDRESS"
        )
    try:
        return Client(address, **{"timeout": wait, **spec.kwargs})
    except (TypeError, ValueError) as error:
        raise SpecError(f"scheduler {address}: {_line(error)}") from error
    except OSError as error:
        raise RunError(
            f"scheduler {address}: no answer in {wait:g} s; is it running, and reachable from here?"
        ) from error


def _check_loopback(kwargs: Mapping[str, Any]) -> None:
    """Refuse a dashboard that strangers can open: it shows data, and tcp clients may run code."""
    for key in ("dashboard_address", "worker_dashboard_address"):
        address = kwargs.get(key)
        host = str(address).removeprefix("http://").rpartition(":")[0].strip("[]")
        if address is None or host == "localhost":
            continue
        try:
            is_open = not ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_open = True
        if is_open:
            raise SpecError(
                f"{key}: {address!r} is open to the network; use 127.0.0.1:8787 (or :0, any port)"
            )


def await_workers(client: Client, n_workers: int, wait: float) -> None:
    """Wait for so many workers, ``wait`` seconds at most.

    Raises
    ------
    RunError
        Fewer came.
    """
    deadline = time.monotonic() + wait
    while (found := len(worker_threads(client, wait))) < n_workers:
        if time.monotonic() > deadline:
            raise RunError(
                f"workers: {found} of {n_workers} came in {wait:g} s; start more, or raise `wait`"
            )
        time.sleep(0.1)


@contextlib.contextmanager
def performance_report(file: str | os.PathLike, client: Client) -> Iterator[None]:
    """Write Dask's performance report (HTML) of what is done on the active client in the context.

    It is ``distributed.performance_report``, asked first whether it can work. When it cannot be
    written in the end, as the scheduler is gone, a warning says so: the work is not lost with it.

    Raises
    ------
    SpecError
        The scheduler has no bokeh; the file's folder does not exist.
    """
    if not (folder := pathlib.Path(file).resolve().parent).is_dir():
        raise SpecError(f"performance report: {folder} does not exist; make it, or name another")
    try:
        client.run_on_scheduler(metadata.version, "bokeh")
    except metadata.PackageNotFoundError:
        raise SpecError(
            "performance report: the scheduler has no bokeh; pip install 'dforest[cluster]' there"
        ) from None
    report = distributed.performance_report(filename=str(file))
    report.__enter__()
    try:
        yield
    finally:
        try:
            report.__exit__(None, None, None)
        except Exception as error:  # whatever it is, it must not hide how the work ended
            warnings.warn(f"performance report: not written ({_line(error)})", stacklevel=3)


def versions() -> dict[str, str]:
    """Versions that decide the bits of a result, of this process: {"python": "3.11", ...}."""
    return {"python": "{}.{}".format(*sys.version_info), **package_versions(MUST_AGREE)}


def package_versions(names: Sequence[str]) -> dict[str, str]:
    """Version of each package, or that it is not installed."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _inspect(nonce: str) -> tuple[dict[str, str], bool]:
    return versions(), os.path.exists(nonce)


def preflight(client: Client, folder: str | os.PathLike, wait: float = 30.0) -> dict[str, str]:
    """Ask every worker whether it runs the same versions and sees ``folder``; return the versions.

    Raises
    ------
    RunError
        A worker does not see a file written here, or none answers.
    SpecError
        A worker runs another version of Python, dforest, numpy, numba or zarr.
    """
    ours = versions()
    nonce = pathlib.Path(folder).resolve() / f".dforest-{uuid.uuid4().hex}"
    nonce.touch()
    try:
        answers = ask_workers(client, _inspect, str(nonce), wait=wait)
    finally:
        nonce.unlink()
    for worker, answer in answers.items():
        _check_answer(worker, answer, ours, nonce.parent)
    return ours


def ask_workers(client: Client, question: Callable[..., Any], *args, wait: float) -> dict[str, Any]:
    """Call a module-level function once on every worker, busy or not: {address: answer}.

    Raises
    ------
    RunError
        There is no worker, or no answer in ``wait`` seconds.
    SpecError
        A worker cannot run it: dforest is missing or too old there.
    """
    ask = functools.partial(client.run, question, *args, on_error="return", asynchronous=True)
    try:  # asynchronous: `run` itself knows no limit, `sync` does
        answers = client.sync(ask, callback_timeout=wait)
    except OSError as error:
        raise RunError(f"workers: no answer in {wait:g} s ({_line(error)})") from error
    if not answers:
        raise RunError("workers: there are none; start some")
    for worker, answer in sorted(answers.items()):
        if isinstance(answer, Exception):
            raise SpecError(
                f"worker {worker}: cannot run dforest ({_line(answer)}); "
                f"install version {versions()['dforest']} there"
            )
    return dict(sorted(answers.items()))


def _check_answer(worker: str, answer: Any, ours: Mapping[str, str], folder: pathlib.Path) -> None:
    theirs, is_visible = answer
    for name, version in ours.items():
        if theirs[name] != version:
            raise SpecError(
                f"worker {worker}: has {name} {theirs[name]}, here is {version}; "
                "results would differ, use the same environment"
            )
    if not is_visible:
        raise _unseen(worker, folder)


def check_visible(client: Client, path: str | os.PathLike, wait: float = 30.0) -> None:
    """Refuse a path that is to be read by workers, of which one does not see it; RunError."""
    for worker, is_visible in ask_workers(client, os.path.exists, str(path), wait=wait).items():
        if not is_visible:
            raise _unseen(worker, path)


def _unseen(worker: str, path: str | os.PathLike) -> RunError:
    return RunError(f"worker {worker}: does not see {path}; use a folder that all machines share")


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
