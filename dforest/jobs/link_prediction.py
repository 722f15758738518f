"""Job: learn which rows of a graph are linked, and judge it on rows never seen."""

import functools
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dforest.arrays import Graph
from dforest.errors import DataError
from dforest.estimators.scores import ranking_scores
from dforest.jobs import sources
from dforest.jobs.learning import learn
from dforest.jobs.plan import Step, Work, mean_and_spread
from dforest.jobs.spec import GraphSpectrum, LinkPrediction
from dforest.methods.forest import groups_of
from dforest.methods.links import cosine_pairs, graph_spectrum, links_to_judge, row_folds, walks
from dforest.run.memory import Room

N_TELLING = 10  # features named in the results
MEASURES = {"auc": "AUC", "average_precision": "average precision"}
RANKERS = ("forest", "cosine")
TREE = 33  # bytes of a node


def steps(job: LinkPrediction, room: Room) -> list[Step]:
    """One step for each fold held out, and one for the model of all rows."""
    points = sources.look_at(job.points, "points", "dataset")
    graph = sources.look_at(job.graph, "graph", "graph")
    if points.n_rows != graph.n_rows:
        raise DataError(
            f"points: {job.points} has {points.n_rows} rows, but graph: {job.graph} has "
            f"{graph.n_rows} nodes; each row must be a node"
        )
    sources.check_folds(job.evaluate.folds, points.n_rows)
    size = _size(job, points.n_rows)
    groups = len(groups_of(0, job.forest.n_estimators))
    held = sources.dense_bytes(points) + size.held
    cost = {
        "tasks": 3 * groups,  # grow some trees; tabulate the response; tabulate links
        "reads": points.n_bytes + graph.n_bytes,
        "memory": -(-held // room.tasks) + 2 * size.parts // groups,
    }
    folds = [f"fold-{k + 1}" for k in range(job.evaluate.folds)]
    judging = [
        Step(name, functools.partial(_judge, job, k), writes=size.parts, **cost)
        for k, name in enumerate(folds)
    ]
    learning = functools.partial(_learn, job)
    return [*judging, Step("learn", learning, writes=size.parts + size.model, **cost)]


class _Size(NamedTuple):
    """Bytes, at most: a forest has a leaf for min_samples_leaf rows, and two nodes for a leaf."""

    held: int  # response and links, by all tasks of a process
    parts: int  # trees and tables as they come back, and are kept until the run is finished
    model: int  # trees, tables of links, leaves of rows


def _size(job: LinkPrediction, n: int) -> _Size:
    n_leaves = max(1, n // job.forest.min_samples_leaf)
    degree = np.diff(sources.read_links(job.graph, job.points).weights.indptr).astype(float)
    n_links = int(degree.sum())
    n_walks = n_links
    if job.walks:  # there are no more walks of k links than the sum of degree^k
        n_walks = int(sum((degree**k).sum() for k in range(1, job.walks.steps + 1)))
    spectrum = job.response if isinstance(job.response, GraphSpectrum) else None
    n_columns = spectrum.graph_spectrum if spectrum else n if job.response == "adjacency" else 0
    trees = 2 * TREE * n_leaves
    columns = 2 * n_leaves * 8 * (n_columns + 3) if n_columns else _links(n_leaves, n_links)
    links, leaves = _links(n_leaves, n_walks), 4 * n
    each = trees + columns + links + 2 * leaves
    model = trees + links + leaves
    return _Size(
        16 * n * n_columns + 16 * (n_links + n_walks),
        job.forest.n_estimators * each,
        job.forest.n_estimators * model,
    )


def _links(n_leaves: int, n_links: int) -> int:
    """Table of a tree: an entry for two leaves with links, three numbers a node or leaf."""
    return 20 * min(n_leaves**2, n_links) + (2 * 16 + 8) * n_leaves


def _data(job: LinkPrediction) -> tuple[Any, sparse.csr_array]:
    """Features (n, p) and links (n, n) of the same rows."""
    return sources.read_points(job.points), sources.read_links(job.graph, job.points).weights


def _judge(job: LinkPrediction, fold: int, work: Work) -> dict[str, Any]:
    """Learn without one fold's rows and links; rank its links above its non-links."""
    X, weights = _data(job)
    held = row_folds(X.shape[0], job.evaluate.folds, seed=job.seed)[fold]
    seen = np.setdiff1d(np.arange(X.shape[0]), held)
    forest = _fit(job, f"fold-{fold + 1}", work, X[seen], weights[seen][:, seen])
    i, j, is_link = links_to_judge(weights, held, job.evaluate.non_links, seed=job.seed + fold)
    return {
        "rows_seen": len(seen),
        "rows_held_out": len(held),
        "links": int(is_link.sum()),
        "non_links": int((~is_link).sum()),
        "forest": ranking_scores(is_link, -forest.paired(X[i], X[j])),
        "cosine": ranking_scores(is_link, cosine_pairs(X, i, j)),
    }


def _learn(job: LinkPrediction, work: Work) -> dict[str, Any]:
    """Learn from all rows, save the model, and name the features that tell most."""
    X, weights = _data(job)
    names = sources.look_at(job.points, "points", "dataset").names
    forest = _fit(job, "learn", work, X, weights)
    forest.save(work.folder / "forest.zarr")
    gains = forest.feature_importances_
    telling = sources.most_telling(gains, names, job.feature_noun, N_TELLING)
    return {"model": "forest.zarr", "telling": telling}


def _fit(job: LinkPrediction, name: str, work: Work, X, weights: sparse.csr_array):
    """Grow trees on the response, then tabulate links at their leaves."""
    links = walks(weights, job.walks.steps, job.walks.share) if job.walks else weights
    fit = functools.partial(learn, job, name, work, X, links=Graph(links))
    if isinstance(job.response, GraphSpectrum):
        columns = graph_spectrum(weights, job.response.graph_spectrum, seed=job.seed)
        return fit("half_squared", columns)
    if job.response == "adjacency":
        return fit("half_squared", weights.toarray())
    return fit("graph", Graph(weights))


def results(job: LinkPrediction, done: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Sum up the steps: mean and spread over folds of each measure, beside the baseline's."""
    folds = [done[f"fold-{k + 1}"] for k in range(job.evaluate.folds)]
    scores = {who: {key: mean_and_spread([fold[who][key] for fold in folds]) for key in MEASURES}
              for who in RANKERS}  # fmt: skip
    return {"folds": len(folds), **scores, **done["learn"]}


def as_text(found: dict[str, Any]) -> list[str]:
    """Lines for people."""
    lines = [
        f"Links of rows never seen: mean over {found['folds']} folds (spread)",
        "",
        f"{'':20}" + "".join(f"{who:>16}" for who in RANKERS),
    ]
    for key, name in MEASURES.items():
        cells = [f"{found[who][key]['mean']:.3f} ({found[who][key]['spread']:.3f})"
                 for who in RANKERS]  # fmt: skip
        lines.append(f"{name:20}" + "".join(f"{cell:>16}" for cell in cells))
    return [*lines, "", *sources.telling_as_text(found["telling"])]
