"""Plan a job, and run it: step by step, each step's results on disk before the next begins."""

import contextlib
import hashlib
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from dforest.errors import DforestError, SpecError
from dforest.jobs import distance_forest, distance_matrix, link_prediction
from dforest.jobs.cluster import budget_before, budget_of, client_at, cluster_at
from dforest.jobs.plan import Budget, Step, Work, as_plan, check_budget
from dforest.jobs.record import DECIDING, WORKING, Record, stamp, versions
from dforest.jobs.spec import AnyJob
from dforest.run.client import performance_report, preflight
from dforest.run.events import listening, progress
from dforest.run.memory import Room
from dforest.store.lock import Lock

MODULES: dict[str, Any] = {
    "link_prediction": link_prediction,
    "distance_forest": distance_forest,
    "distance_matrix": distance_matrix,
}
ENDLESS = Budget(Room(1 << 62, 1), None)
SMALLER = {  # ways to a task that takes less memory
    "link_prediction": "raise forest.min_samples_leaf or take fewer columns in graph_spectrum",
    "distance_forest": "lower forest.pool_size",
    "distance_matrix": "lower tile",
}


def plan_of(job: AnyJob, where: str | None = None) -> dict[str, Any]:
    """Say what a job would do; inputs are looked at, nothing is written or started.

    A scheduler that runs already is asked how much memory its workers have.

    Raises
    ------
    DforestError
        The inputs do not fit the request, a task would not fit its memory, or the output holds
        another request's run.
    """
    record = Record.open(job.output, request_of(job), resume=True)
    budget = budget_before(cluster_at(where), job.threads)
    return _planned(job, MODULES[job.kind].steps(job, budget.room), budget, record)


def launch(
    job: AnyJob,
    where: str | None = None,
    *,
    resume: bool = False,
    report: str | None = None,
    on_plan: Callable[[dict[str, Any]], None] = lambda plan: None,
) -> dict[str, Any]:
    """Run a job; return the record that is in ``run.json``.

    A finished run of the same request is left as it is. Steps that an earlier run finished are
    not done again, nor are the trees it has receipts for.

    Parameters
    ----------
    job : a checked job
    where : str, optional
        Cluster file or scheduler address; else ``DASK_SCHEDULER_ADDRESS``, else this process.
    resume : bool
        Continue a half-finished run.
    report : str, optional
        File for Dask's performance report of the run (HTML).
    on_plan : callable
        Called with the plan (as of `plan_of`) once it is known to fit, before the first task; also
        when the run was finished before, and nothing is left to do.

    Raises
    ------
    LockedError
        Another run writes the same output.
    DforestError
        Whatever stopped the run; ``run.json`` says how far it came.
    """
    cluster, module, request = cluster_at(where), MODULES[job.kind], request_of(job)
    if report is not None and cluster is None:
        raise SpecError("performance report: only a Dask cluster has one; give --cluster")
    steps = module.steps(job, ENDLESS.room)  # looks at the inputs, before a cluster is started
    with Lock(job.output):
        record = Record.open(job.output, request, resume=resume)
        if record.is_finished:
            on_plan(_planned(job, steps, ENDLESS, record))
            return record.facts
        with client_at(cluster) as client, _reported(report, client):
            budget = budget_of(cluster, client, job.threads)
            steps = module.steps(job, budget.room)
            plan = _planned(job, steps, budget, record)
            with _told(record, plan):
                if client is not None:
                    preflight(client, job.output)
                on_plan(plan)
                _do(steps, record, _work(job.output, request, client))
        shutil.rmtree(job.output / WORKING, ignore_errors=True)
        record.write("finished", results=module.results(job, record.facts["steps"]))
    return record.facts


def _planned(job: AnyJob, steps: list[Step], budget: Budget, record: Record) -> dict[str, Any]:
    done = list(record.facts["steps"])
    check_budget(steps, budget, done, SMALLER.get(job.kind, ""))
    facts = {"kind": job.kind, "output": str(job.output), "finished": record.is_finished}
    return {**facts, **as_plan(steps, budget, done)}


def _reported(file: str | None, client: Any) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if file is None else performance_report(file, client)


@contextlib.contextmanager
def _told(record: Record, plan: dict[str, Any]) -> Iterator[None]:
    """Keep ``run.json`` true while steps are done, also when they are stopped."""
    record.facts.pop("error", None)
    record.write("running", plan=plan)
    try:
        with listening(record.listen):
            yield
    except BaseException as error:
        why = str(error) if isinstance(error, DforestError) else type(error).__name__
        record.write("stopped", error=why)
        raise


def request_of(job: AnyJob) -> dict[str, Any]:
    """All that decides the results: the job but for where and how fast, inputs, versions."""
    paths = {key: getattr(job, key) for key in job.inputs}
    inputs = {key: stamp(path) for key, path in paths.items() if path is not None}
    asked = job.model_dump(mode="json", exclude={"output", "threads"})
    found = versions()
    return {**asked, "inputs": inputs, "versions": {name: found[name] for name in DECIDING}}


def as_text(record: dict[str, Any]) -> list[str]:
    """Lines for people: what came of a finished run."""
    return MODULES[record["request"]["kind"]].as_text(record["results"])


def _work(folder: pathlib.Path, request: dict[str, Any], client: Any) -> Work:
    fingerprint = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
    return Work(folder, folder / WORKING, fingerprint, client)


def _do(steps: list[Step], record: Record, work: Work) -> None:
    with progress("steps", len(steps)) as count:
        for step in steps:
            if step.name not in record.facts["steps"]:
                record.step = step.name
                record.finish_step(step.name, step.do(work))
            count()
