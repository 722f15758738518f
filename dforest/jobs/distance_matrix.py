"""Job: compute the distances of all rows with each other, into a matrix store."""

import functools
import pathlib
import time
from typing import Any

from dforest.distances.pairwise import measure_of
from dforest.errors import DataError, SpecError
from dforest.estimators.pairwise import pairwise_distances
from dforest.estimators.saving import load
from dforest.jobs import sources
from dforest.jobs.plan import Step, Work, as_size
from dforest.jobs.spec import DistanceMatrixJob
from dforest.methods import pairwise
from dforest.run.memory import Room
from dforest.store import schema

STORE = "distances.zarr"
ANSWER_BYTES = 96  # of a task for each pair of a tile, where a forest answers: sums over its trees


def steps(job: DistanceMatrixJob, room: Room) -> list[Step]:
    """One step; the same call of another run takes up the tiles that it has written."""
    points = sources.look_at(job.points, "points", "dataset")
    held, n = sources.held_bytes(job.points), points.n_rows
    of_matrix = functools.partial(pairwise.cost, n, layout=job.symmetric, tile=job.tile)
    if job.model is None:
        measure_of(job.distance, _options(job), n_features=points.n_columns)  # refuses bad options
        shared, cost = held, of_matrix(points.n_columns, held / n)
    else:
        n_trees, size = _look_at_model(job.model, points.n_columns)
        leaves = 4 * n * n_trees  # are what is compared, once the points have reached them
        shared = held + leaves + size
        cost = of_matrix(n_trees, leaves / n, pair_bytes=ANSWER_BYTES)
    return [
        Step(
            "compute",
            functools.partial(_compute, job),
            tasks=cost.tasks,
            reads=points.n_bytes + cost.reads,
            writes=cost.writes,
            memory=cost.memory + -(-shared // room.tasks),
        )
    ]


def _options(job: DistanceMatrixJob) -> dict[str, Any]:
    return job.options.model_dump(exclude_none=True)


def _look_at_model(path: pathlib.Path, n_features: int) -> tuple[int, int]:
    """Trees and bytes of a saved distance forest of so many features; its arrays are not read."""
    if not path.exists():
        raise SpecError(f"model: {path} does not exist")
    said = schema.facts(schema.open_group(path, "forest"))["facts"]
    if said["class"] != "DistanceForest":
        raise SpecError(f"model: {path} holds a {said['class']}; give a DistanceForest")
    if said["model"]["n_features"] != n_features:
        raise DataError(
            f"points: the rows have {n_features} features, but model: {path} was fitted on "
            f"{said['model']['n_features']}; give points with the same features"
        )
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return said["model"]["recipe"]["n_estimators"], size


def _compute(job: DistanceMatrixJob, work: Work) -> dict[str, Any]:
    """Compute the matrix, tile by tile."""
    start = time.monotonic()
    work.working.mkdir(parents=True, exist_ok=True)  # from now on the run has begun
    points = job.points if job.points.is_dir() else sources.read_points(job.points)
    distance = job.distance if job.model is None else load(job.model)
    stored = pairwise_distances(
        points, distance=distance, out=work.folder / STORE, symmetric=job.symmetric, tile=job.tile,
        n_jobs=job.threads, client=work.client, **_options(job),
    )  # fmt: skip
    blocks = [file for file in stored.path.glob("*/z/c/*/*") if file.is_file()]
    return {
        "matrix": STORE,
        "n": stored.n_rows,
        "tiles": len(blocks),
        "bytes": sum(file.stat().st_size for file in blocks),
        "largest": stored.largest,
        "seconds": round(time.monotonic() - start, 3),
    }


def results(job: DistanceMatrixJob, done: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the step found."""
    return done["compute"]


def as_text(found: dict[str, Any]) -> list[str]:
    """Lines for people."""
    return [
        f"Distances of {found['n']:,} rows with each other, the largest {found['largest']:.6g}: "
        f"{found['matrix']}, {found['tiles']:,} tiles, {as_size(found['bytes'])}"
    ]
