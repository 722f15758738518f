"""What estimators are given, read once: arrays, frames, or paths of stores."""

import numbers
import os
from typing import Any

import numpy as np

from dforest.arrays import Features, Graph, as_features
from dforest.arrays.distances import check_shape
from dforest.arrays.frames import is_frame, order_by_label
from dforest.errors import StoreError
from dforest.methods.answers import StoredRows
from dforest.methods.costs import fits
from dforest.methods.notions import Given, check_given
from dforest.methods.stored import stored_given
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.memory import room_of
from dforest.store import schema
from dforest.store.dataset import Dataset
from dforest.store.graph import read_graph
from dforest.store.matrix import MatrixStore


def read_features(X: Any, **checks) -> Features:
    """Features of ``X``: anything `as_features` takes, a `Dataset`, or the path of one."""
    found = open_features(X, **checks)
    if not isinstance(found.values, StoredRows):
        return found
    whole = as_features(found.values[:], **(checks | {"feature_names": None}))
    return found._replace(values=whole.values)


def open_features(X: Any, **checks) -> Features:
    """As `read_features`, but features of a dataset stay in their store, as `StoredRows`."""
    if isinstance(X, str | os.PathLike):
        X = Dataset(X)
    if not isinstance(X, Dataset):
        return as_features(X, **checks)
    rows = StoredRows(X)
    as_features(rows[:1], **(checks | {"feature_names": None}))
    wanted = checks.get("feature_names")
    if wanted is not None and X.feature_names is not None and X.feature_names != tuple(wanted):
        raise StoreError(
            f"{X.path} has other features than the model was fitted on: "
            f"{', '.join(X.feature_names[:3])}, ... instead of {', '.join(wanted[:3])}, ..."
        )
    return Features(rows, X.feature_names, X.ids)


def ids_of(X: Any, read: Features) -> np.ndarray | None:
    """Names that the rows of a store computed from ``X`` get: a dataset's ids, no frame's index."""
    return None if is_frame(X) else read.labels


def read_given(
    distance: str, Z: Any, X: Features, runner: Here | Cluster, pool_size: int | None = None
) -> Given:
    """Distances between the rows of ``X``, checked.

    A store is read whole if it fits into this process, which alone needs all of it; otherwise it is
    read where it is needed. One with other ids than the rows of X is refused, and one in another
    order is reordered.
    """
    n, labels = X.values.shape[0], X.labels
    if isinstance(Z, str | os.PathLike):
        is_graph = schema.facts(schema.open_group(Z))["format"] == "graph"
        Z = read_links(Z, labels) if is_graph else MatrixStore(Z)
    if isinstance(Z, MatrixStore):
        check_shape(Z.shape, n)
        order = _order(Z.ids, labels, str(Z.path))
        if distance == "precomputed" and not _is_held(n, runner, pool_size):
            return stored_given(Z, np.arange(n) if order is None else order)
        Z = np.asarray(Z) if order is None else Z[order, order]
    return check_given(distance, Z, n, labels)


def _is_held(n: int, runner: Here | Cluster, pool_size: Any) -> bool:
    is_pooled = isinstance(pool_size, numbers.Integral) and 0 < int(pool_size) < n
    return isinstance(runner, Here) and not is_pooled and fits(n, room_of(runner))


def read_links(path: str | os.PathLike, labels) -> Graph:
    """Links of a graph store, its ids matched to labels."""
    stored = read_graph(path)
    order = _order(stored.ids, labels, str(path))
    graph = Graph(stored.weights, stored.far)
    return graph if order is None else graph.take(order)


def _order(ids, labels, what: str):
    return None if ids is None or labels is None else order_by_label(ids, labels, what)
