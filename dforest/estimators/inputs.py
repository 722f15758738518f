"""What estimators are given, read once: arrays, frames, or paths of stores."""

import os
from typing import Any

import numpy as np

from dforest.arrays import Features, Graph, as_features
from dforest.arrays.frames import order_by_label
from dforest.errors import StoreError
from dforest.methods.notions import Given, check_given
from dforest.store import schema
from dforest.store.dataset import Dataset
from dforest.store.graph import read_graph
from dforest.store.matrix import MatrixStore


def read_features(X: Any, **checks) -> Features:
    """Features of ``X``: anything `as_features` takes, a `Dataset`, or the path of one."""
    if isinstance(X, str | os.PathLike):
        X = Dataset(X)
    if not isinstance(X, Dataset):
        return as_features(X, **checks)
    found = as_features(X.points.read(), **(checks | {"feature_names": None}))
    wanted = checks.get("feature_names")
    if wanted is not None and X.feature_names is not None and X.feature_names != tuple(wanted):
        raise StoreError(
            f"{X.path} has other features than the model was fitted on: "
            f"{', '.join(X.feature_names[:3])}, ... instead of {', '.join(wanted[:3])}, ..."
        )
    return found._replace(names=X.feature_names, labels=X.ids)


def read_given(distance: str, Z: Any, X: Features) -> Given:
    """Distances between the rows of ``X``, read and checked."""
    return check_given(distance, read_distances(Z, X.labels), X.values.shape[0], X.labels)


def read_distances(Z: Any, labels) -> Any:
    """Distances ``Z``, read if it is a store or the path of one: its ids are matched to labels.

    A store with other ids than the rows of X is refused, and one in another order is reordered.
    """
    if isinstance(Z, str | os.PathLike):
        format = schema.facts(schema.open_group(Z))["format"]
        if format == "graph":
            stored = read_graph(Z)
            order = _order(stored.ids, labels, str(Z))
            graph = Graph(stored.weights, stored.far)
            return graph if order is None else graph.take(order)
        Z = MatrixStore(Z)
    if not isinstance(Z, MatrixStore):
        return Z
    order = _order(Z.ids, labels, str(Z.path))
    return np.asarray(Z) if order is None else Z[order, order]


def _order(ids, labels, what: str):
    return None if ids is None or labels is None else order_by_label(ids, labels, what)
