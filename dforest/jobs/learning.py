"""The seam between jobs and forests: fit one, keeping receipts so that a killed run resumes."""

from typing import Any

from dforest.estimators.forests import DistanceForest
from dforest.jobs.plan import Work
from dforest.methods.forest import keeping
from dforest.store.receipts import Receipts


def forest_of(job: Any, distance: str) -> DistanceForest:
    """Return the unfitted forest that a checked job asks for."""
    return DistanceForest(
        distance=distance,
        n_jobs=job.threads,
        random_state=job.seed,
        **job.forest.model_dump(),
    )


def learn(job: Any, name: str, work: Work, X, distance: str, target, links=None) -> DistanceForest:
    """Fit a forest with the job's parameters; ``links``, a graph, then takes over the leaf tables.

    Parameters
    ----------
    job : a checked job with ``forest``, ``seed`` and ``threads``
    name : str
        Of the step; receipts of trees and tables are kept under it.
    X, target : what ``DistanceForest.fit`` takes
    """
    forest = forest_of(job, distance)
    with keeping(Receipts(work.working / name, work.fingerprint)):
        forest.fit(X, target, client=work.client)
        if links is not None:
            rows = job.forest.leaf_rows
            forest.refit_leaves(X, links, distance="graph", leaf_rows=rows, client=work.client)
    return forest
