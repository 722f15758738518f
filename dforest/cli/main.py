"""The commands, and how they end: exit codes, one-line errors, one JSON object."""

import contextlib
import functools
import json
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import click

from dforest.cli import show
from dforest.cli.progress import shown
from dforest.errors import DforestError, RunError
from dforest.jit import compiling
from dforest.jobs import doctor as doctor_job
from dforest.jobs import stores
from dforest.jobs.launch import as_text, launch, plan_of
from dforest.jobs.record import versions
from dforest.jobs.spec import job_schema, read_job
from dforest.run.events import Event, listening

GRACE = 5  # seconds that a block may still take when an operator asks to stop
INTERRUPTED = 130  # as shells say it of Ctrl-C
_asked_to_stop = threading.Event()

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
cluster = click.option(
    "--cluster",
    metavar="FILE|ADDRESS",
    help="Cluster file, or a scheduler as tcp://host:8786. Default: DASK_SCHEDULER_ADDRESS if "
    "set, else the threads of this process.",
)


def _ends_well(command: Callable[..., tuple[dict[str, Any], list[str]]]) -> Callable[..., None]:
    """Print what a command found; turn our own errors into one line and an exit code.

    The command returns what ``--json`` prints, and the lines for people.
    """

    @functools.wraps(command)
    def run(*args, as_json: bool = False, **kwargs) -> None:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("default", module="dforest", category=UserWarning)
                warnings.showwarning = _note
                found, lines = command(*args, **kwargs)
        except (DforestError, KeyboardInterrupt, MemoryError) as error:
            code, why = _ending(error)
            _echo(why)
            if as_json:
                click.echo(json.dumps({"error": why, "exit_code": code}))
            sys.exit(code)
        click.echo(json.dumps(found) if as_json else "\n".join(lines))
        sys.exit(found.get("exit_code", 0))

    return run


def _ending(error: BaseException) -> tuple[int, str]:
    """Exit code, and one line that says why."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted; continue with --resume"
    why = " ".join(str(error).split())
    if isinstance(error, MemoryError):  # of this process; a task's is a RunError
        return RunError.exit_code, f"out of memory ({why}); use a machine with more"
    return getattr(error, "exit_code", 1), why


def _note(message, category, filename, lineno, file=None, line=None) -> None:
    _echo(f"note: {message}")


def _echo(text: str) -> None:
    click.echo(f"dforest: {text}", err=True)


def _show_plan(found: dict[str, Any]) -> None:
    if found["finished"]:
        _echo("note: finished already, nothing done")
    else:
        click.echo("\n".join([*show.plan(found), ""]), err=True)


@contextlib.contextmanager
def _telling_of_compiling() -> Iterator[None]:
    """Say once why nothing seems to happen: the first run on a machine compiles for a minute."""
    said: list[str] = []

    def say(folder: str) -> None:
        if not said:
            said.append(folder)
            _echo(f"compiling, once for this machine (kept in {folder}): up to a minute")

    with compiling(say):
        yield


def _stop(signum, frame):
    """Stop for an operator's SIGTERM when the next block ends; at once if none does or asked again.

    Between blocks no compiled code runs on this thread, which an exception might catch half-way.
    """
    if signum == signal.SIGALRM or _asked_to_stop.is_set():
        raise KeyboardInterrupt  # run.json will say so, and the workers stop
    _asked_to_stop.set()
    signal.alarm(GRACE)


def _stop_between_blocks(event: Event) -> None:
    if event.kind == "step" and _asked_to_stop.is_set():
        _asked_to_stop.clear()
        signal.alarm(0)
        raise KeyboardInterrupt


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(versions()["dforest"], prog_name="dforest")
def main() -> None:
    """Learn distances with decision forests, out of core and on Dask.

    Exit codes: 0 done or nothing to do, 2 the request is wrong, 3 another run holds the output,
    75 try again later. A traceback means a bug.
    """
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _stop)


@main.command()
@click.argument("job_file", metavar="JOB.yaml")
@cluster
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="As seed=1 or forest.n_estimators=50.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan and do nothing.")
@click.option("--resume", is_flag=True, help="Continue a half-finished run.")
@click.option(
    "--performance-report", "report", metavar="FILE.html", help="Write what Dask saw of the run."
)
@as_json
@_ends_well
def run(job_file, cluster, settings, dry_run, resume, report):
    """Run a job file; results go to its `output` folder."""
    job = read_job(job_file, settings)
    if dry_run:
        plan = plan_of(job, cluster)
        return plan, [*show.plan(plan), "nothing was done (--dry-run)"]
    with shown(), listening(_stop_between_blocks), _telling_of_compiling():
        record = launch(job, cluster, resume=resume, report=report, on_plan=_show_plan)
    found = {key: record[key] for key in ("status", "seconds", "results")}
    footer = f"results in {job.output} ({record['seconds']:.1f} s)"
    return {"output": str(job.output), **found}, [*as_text(record), "", footer]


@main.command()
@click.argument("source")
@click.argument("path", metavar="STORE")
@click.option("--kind", type=click.Choice(["auto", "points", "matrix", "graph"]), default="auto")
@click.option("--key", help="Member of an .npz.")
@click.option("--id-column", help="Column that names the rows.")
@click.option("--label-column", help="Column of classes.")
@click.option(
    "--feature-column", "feature_columns", multiple=True, help="May be repeated; all others else."
)
@click.option("--response-column", "response_columns", multiple=True, help="May be repeated.")
@click.option("--n-rows", type=int, help="Of a graph whose edges end in row numbers.")
@click.option("--like", help="Dataset whose ids are the ends of a graph's edges.")
@click.option("--far", type=float, default=1.0, help="Distance of rows without an edge.")
@click.option("--symmetric", type=click.Choice(["upper", "full"]), default="upper")
@click.option("--dtype", type=click.Choice(["float32", "float64"]), default="float32")
@click.option("--update", is_flag=True, help="Add rows to the dataset that is there.")
@as_json
@_ends_well
def ingest(source, path, **options):
    """Turn SOURCE (CSV, npy, npz, Parquet) into a store, block by block."""
    options["feature_columns"] = options["feature_columns"] or None
    with shown(), listening(_stop_between_blocks):
        found = stores.ingest(source, path, **options)
    return found, show.facts(found)


@main.command()
@click.argument("path")
@as_json
@_ends_well
def inspect(path):
    """Say what a store, a model or a run's folder holds."""
    found = stores.inspect(path)
    return found, show.facts(found)


@main.command()
@cluster
@as_json
@_ends_well
def doctor(cluster):
    """Check versions, the cache of compiled code, scratch space, and the cluster."""
    found = doctor_job.examine(cluster)
    return found, show.checks(found["checks"])


@main.command()
@_ends_well
def schema():
    """Print the JSON Schema of job files, for editors."""
    found = job_schema()
    return found, [json.dumps(found, indent=2)]
