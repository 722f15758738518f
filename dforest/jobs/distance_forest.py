"""Job: learn a distance between rows from a matrix, a graph, labels or responses."""

import functools
from typing import Any

from dforest.errors import DataError
from dforest.estimators.validation import cross_validate
from dforest.jobs import sources
from dforest.jobs.learning import forest_of, learn
from dforest.jobs.plan import Step, Work, mean_and_spread
from dforest.jobs.spec import DistanceForestJob
from dforest.methods.costs import StoredCost, largest_pool, matrix_cost, stored_cost
from dforest.methods.forest import groups_of
from dforest.run.memory import Room
from dforest.store.matrix import MatrixStore

N_TELLING = 10  # features named in the results
SCORES = {"held_out": "test_score", "held_out_to_seen": "seen_score"}  # names there and here
COLUMNS = {"indicator": "labels", "half_squared": "response", "absolute": "response"}


def steps(job: DistanceForestJob, room: Room) -> list[Step]:
    """A step to judge the forest, if asked for, and one to learn and save it."""
    points = sources.look_at(job.points, "points", "dataset")
    target, n_trees = _look_at_target(job, points.n_rows), job.forest.n_estimators
    cost = _cost(job, points.n_rows, room)
    own = {"memory": sources.dense_bytes(points) + cost.memory, "tasks": cost.tasks}
    own["reads"] = points.n_bytes + cost.passes * target
    tables = cost.scratch + cost.model + 80 * n_trees * cost.pool // job.forest.min_samples_leaf
    learning = Step("learn", functools.partial(_learn, job), writes=tables, **own)
    if job.evaluate is None:
        return [learning]
    sources.check_folds(job.evaluate.folds, points.n_rows)
    own |= {"tasks": own["tasks"] * job.evaluate.folds}
    own["reads"] = points.n_bytes + cost.passes * target * job.evaluate.folds
    return [Step("judge", functools.partial(_judge, job), writes=cost.scratch, **own), learning]


def _cost(job: DistanceForestJob, n: int, room: Room) -> StoredCost:
    """What growing and tabulating takes, beside the points."""
    forest, tasks = job.forest, 2 * len(groups_of(0, job.forest.n_estimators))
    if job.distance != "precomputed":
        return StoredCost(n, tasks, 1, 0, 0, 0)
    assert job.matrix is not None  # checked with the job file
    costs = forest.min_samples_leaf, forest.max_split_rows, forest.table_budget, forest.n_estimators
    if job.matrix.is_dir():
        pool = min(forest.pool_size or largest_pool(n, room, *costs), n)
        return stored_cost(MatrixStore(job.matrix), forest, pool, room)
    own = matrix_cost(n, *costs)
    memory = -(-own.of(room.tasks) // room.tasks)
    return StoredCost(min(forest.pool_size or n, n), tasks, 1, 0, memory, own.model)


def _look_at_target(job: DistanceForestJob, n_rows: int) -> int:
    """Bytes to read beside the points, after checking that the rows agree."""
    key = {"precomputed": "matrix", "graph": "graph"}.get(job.distance)
    if key is None:
        return sources.column_of(job.points, COLUMNS[job.distance]).nbytes
    path = getattr(job, key)
    found = sources.look_at(path, key, key)
    if (found.n_rows, found.n_columns) != (n_rows, n_rows):
        raise DataError(
            f"points: {job.points} has {n_rows} rows, but {key}: {path} is "
            f"{found.n_rows} x {found.n_columns}; both sides must be the rows of points"
        )
    return found.n_bytes


def _data(job: DistanceForestJob) -> tuple[Any, Any]:
    """What the forest is fitted on; the ids of stores are matched, files go by position."""
    points = job.points if job.points.is_dir() else sources.read_points(job.points)
    if job.distance == "precomputed":
        assert job.matrix is not None  # checked with the job file
        return points, sources.matrix_at(job.matrix)
    if job.distance == "graph":
        assert job.graph is not None
        return points, sources.read_links(job.graph, job.points)
    return points, sources.column_of(job.points, COLUMNS[job.distance])


def _judge(job: DistanceForestJob, work: Work) -> dict[str, Any]:
    """Score on pairs with rows held out, fold by fold."""
    assert job.evaluate is not None  # else there is no such step
    points, target = _data(job)
    forest = forest_of(job, job.distance)
    found = cross_validate(forest, points, target, cv=job.evaluate.folds, client=work.client)
    return {key: [float(score) for score in found[name]] for key, name in SCORES.items()}


def _learn(job: DistanceForestJob, work: Work) -> dict[str, Any]:
    """Learn from all rows, save the model, and name the features that tell most."""
    points, target = _data(job)
    forest = learn(job, "learn", work, points, job.distance, target)
    forest.save(work.folder / "forest.zarr")
    names = sources.look_at(job.points, "points", "dataset").names
    gains = forest.feature_importances_
    telling = sources.most_telling(gains, names, job.feature_noun, N_TELLING)
    pool = forest.pool_report_
    return {"model": "forest.zarr", "telling": telling, **({"pool": pool} if pool else {})}


def results(job: DistanceForestJob, done: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Sum up the steps: mean and spread over folds, the model, the features."""
    scores = {key: mean_and_spread(folds) for key, folds in done.get("judge", {}).items()}
    return {**({"r2": scores} if scores else {}), **done["learn"]}


def as_text(found: dict[str, Any]) -> list[str]:
    """Lines for people."""
    lines = []
    if "r2" in found:
        lines += ["R^2 over pairs, mean over folds (spread)", ""]
        for key, score in found["r2"].items():
            lines.append(
                f"  {key.replace('_', ' '):24} {score['mean']:.3f} ({score['spread']:.3f})"
            )
        lines.append("")
    if "pool" in found:
        lines += [_pool_as_text(found["pool"]), ""]
    return lines + sources.telling_as_text(found["telling"])


def _pool_as_text(pool: dict[str, Any]) -> str:
    return (
        f"Trees drew from a pool of {pool['pool']:,} rows. From half of it to all of it, answers "
        f"move {pool['moved']:.3g}, by chance {pool['by_chance']:.3g} (spread {pool['spread']:.3g})"
    )
