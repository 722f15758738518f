"""Graphs: symmetric sparse weights, from which z = far - w on stored pairs and far elsewhere."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from dforest.errors import DataError
from dforest.store import schema
from dforest.store.columns import Column, read_ids, write_ids
from dforest.store.staging import Staging


class StoredGraph(NamedTuple):
    """A graph as it was stored."""

    weights: sparse.csr_array  # (n, n) float64, symmetric, indices sorted, no diagonal
    far: float  # distance of two rows without an edge
    ids: np.ndarray | None  # (n,) names of the rows


def write_graph(path, weights, far: float = 1.0, *, ids=None, **facts) -> None:
    """Store a graph as one store, whole or absent.

    Parameters
    ----------
    path : path-like
    weights : (n, n) scipy sparse
        Symmetric, finite, without a diagonal.
    far : float
        Distance of two rows without an edge; z = far - w on an edge.
    ids : (n,) strings or integers, optional
        Names of the rows.

    Raises
    ------
    DataError
        If the weights are not square, not finite, not symmetric, or have a diagonal.

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/friends"
    >>> write_graph(path, sparse.csr_array([[0, 2.0], [2.0, 0]]), far=3.0)
    >>> read_graph(path).weights.toarray()
    array([[0., 2.],
           [2., 0.]])
    """
    weights = checked_weights(weights)
    if not np.isfinite(far):
        raise DataError(f"far must be a finite distance, got {far}")
    n = weights.shape[0]
    with Staging(path, "graph") as staging:
        for name in ("data", "indices", "indptr"):
            values = getattr(weights, name)
            values = values if name == "data" else values.astype(np.int64)
            rows = max(1, min(len(values), 2**20))
            column = Column.create(staging.group, name, values.dtype, rows=rows)
            column.append(values)
            column.finish()
        if ids is not None:
            write_ids(staging.group, ids, n)
        staging.publish(n_rows=n, n_edges=weights.nnz // 2, far=float(far), **facts)


def read_graph(path) -> StoredGraph:
    """Read a stored graph whole: its edges are what memory must hold.

    Raises
    ------
    StoreError
        If it is missing or damaged.
    """
    group = schema.open_group(path, "graph")
    said = schema.facts(group)
    names = ("data", "indices", "indptr")
    arrays = tuple(schema.read(schema.member(group, name)) for name in names)
    n = int(said["n_rows"])
    return StoredGraph(sparse.csr_array(arrays, shape=(n, n)), float(said["far"]), read_ids(group))


def checked_weights(weights) -> sparse.csr_array:
    """Weights as a CSR array of float64 with sorted indices, or what is wrong with them."""
    if not sparse.issparse(weights) or weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise DataError(f"weights must be a square sparse matrix, got shape {np.shape(weights)}")
    weights = sparse.csr_array(weights, dtype=np.float64)
    weights.sum_duplicates()
    weights.eliminate_zeros()
    if not np.isfinite(weights.data).all():
        raise DataError("weights must be finite; leave out the pairs that are no edges")
    gap = abs(weights - weights.T).tocoo()
    if gap.nnz and gap.data.max() > 0:
        i, j = (int(part[gap.data.argmax()]) for part in gap.coords)
        raise DataError(
            f"the graph is directed: w[{i}, {j}] = {weights[i, j]:g} but w[{j}, {i}] = "
            f"{weights[j, i]:g} is its worst pair; use w.maximum(w.T) or w + w.T"
        )
    loops = np.flatnonzero(weights.diagonal())
    if loops.size:
        raise DataError(
            f"row {loops[0]} has an edge to itself, one of {loops.size} such rows; a distance to "
            "itself is 0, so drop them with w.setdiag(0)"
        )
    return weights
