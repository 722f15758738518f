"""Distances that are one number almost everywhere: those of a weighted graph."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dforest.arrays.distances import TOLERANCE
from dforest.arrays.frames import is_frame
from dforest.arrays.numbers import as_numbers, check_places
from dforest.arrays.pairs import row_numbers, unordered, vector
from dforest.arrays.parameters import check_count
from dforest.errors import DataError, SpecError


@dataclass(frozen=True, eq=False, init=False)
class Graph:
    """Distances from a graph: z = far - w on its edges, far elsewhere, 0 on the diagonal.

    Parameters
    ----------
    weights : (n, n) sparse, or (m,) with ``edges``
        Similarity of two rows, symmetric, finite, any sign. With ``edges``, one weight an edge; 1
        everywhere if not given.
    far : float
        Distance of two rows without an edge.
    edges : (m, 2) int, optional
        Row numbers of the two ends; an edge has no direction and may be given both ways.
    n_rows : int, optional
        Number of rows with ``edges``, for rows at the end that have none. By default one more than
        the largest row number.

    Attributes
    ----------
    weights : (n, n) CSR, float64
        Symmetric, indices sorted (int32 where that suffices), no zeros stored, empty diagonal.
    far : float

    Raises
    ------
    DataError
        A directed graph, a weight that is not finite, edges that are no (m, 2) row numbers, or an
        edge with two weights.

    Warns
    -----
    UserWarning
        Self-loops are dropped: the distance of a row to itself is 0.

    Examples
    --------
    >>> graph = Graph(edges=[[0, 1], [1, 2]])
    >>> graph
    Graph(3 rows, 2 edges, far=1)
    >>> graph.dense()
    array([[0., 0., 1.],
           [0., 0., 0.],
           [1., 0., 0.]])
    """

    weights: sparse.csr_array
    far: float

    def __init__(self, weights: Any = None, far: float = 1.0, *, edges: Any = None, n_rows=None):
        n_rows = None if n_rows is None else check_count("n_rows", n_rows)
        if edges is not None:
            matrix = _from_edges(edges, weights, n_rows)
        elif weights is None:
            raise DataError("Graph got neither weights nor edges; give one of them")
        else:
            matrix = _from_matrix(weights, n_rows)
        object.__setattr__(self, "weights", matrix)
        object.__setattr__(self, "far", _finite_number("far", far))

    @property
    def n_rows(self) -> int:
        """Number of rows, isolated ones too."""
        return self.weights.shape[0]

    def for_rows(self, n: int) -> "Graph":
        """The same graph, known to have ``n`` rows; DataError if it has not."""
        if self.n_rows != n:
            raise DataError(
                f"X has {n} rows, the graph has {self.n_rows}; rows without an edge count too: "
                f"Graph(edges=..., n_rows={n})"
            )
        return self

    def take(self, rows: Any) -> "Graph":
        """The graph among distinct ``rows`` (r,), renumbered 0 to r - 1."""
        rows = row_numbers(rows, "rows")
        if len(np.unique(rows)) < len(rows):
            raise DataError("rows has a row twice; the edge of a row with its copy is not defined")
        return Graph(self.weights[rows][:, rows], self.far)

    def dense(self) -> np.ndarray:
        """The (n, n) float64 matrix of distances: for small n and for tests."""
        z = self.far - self.weights.toarray()
        np.fill_diagonal(z, 0.0)
        return z

    def __repr__(self):
        return f"Graph({self.n_rows} rows, {self.weights.nnz // 2} edges, far={self.far:g})"


def _from_edges(edges: Any, weights: Any, n_rows: int | None) -> sparse.csr_array:
    ends = row_numbers(edges, "edges")
    if ends.size == 0:
        ends = ends.reshape(0, 2)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise DataError(f"edges must be (m, 2), got shape {ends.shape}; give the two ends of each")
    w = np.ones(len(ends)) if weights is None else vector(weights, "weights")
    if len(w) != len(ends):
        raise DataError(
            f"weights has {len(w)} elements, edges {len(ends)}; give one weight an edge"
        )
    needed = 1 + int(ends.max(initial=-1))
    n = needed if n_rows is None else n_rows
    if n < max(needed, 1):
        raise DataError(
            f"edges need {max(needed, 1)} rows, n_rows is {n_rows}; give the number of rows of X"
        )
    _check_finite(w, lambda k: f"weights[{k}], of rows {ends[k, 0]} and {ends[k, 1]},")
    is_loop = ends[:, 0] == ends[:, 1]
    _warn_of_loops(int(is_loop.sum()))
    ends, w = ends[~is_loop], w[~is_loop]
    i, j, w = unordered(ends[:, 0], ends[:, 1], w, "Graph", "weight")
    both = np.r_[i, j], np.r_[j, i]
    return _canonical(sparse.csr_array((np.r_[w, w], both), shape=(n, n)))


def _from_matrix(weights: Any, n_rows: int | None) -> sparse.csr_array:
    if is_frame(weights):
        raise DataError("weights is a frame, but a graph has row numbers; give weights.to_numpy()")
    if not sparse.issparse(weights):
        weights = as_numbers(weights, "weights")
    shape = weights.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise DataError(f"weights has shape {shape}; give (n, n), or edges=(m, 2) and weights=(m,)")
    if n_rows not in (None, shape[0]):
        raise DataError(f"n_rows is {n_rows}, weights is {shape}; leave n_rows out")
    matrix = check_places(sparse.csr_array(weights), "weights")
    data = np.asarray(as_numbers(matrix.data, "weights"), np.float64).copy()
    matrix = sparse.csr_array((data, matrix.indices.copy(), matrix.indptr.copy()), shape=shape)
    matrix.sum_duplicates()
    _check_finite(matrix.data, lambda k: "w" + str(_place(matrix, k)))
    diagonal = matrix.diagonal()
    _warn_of_loops(int(np.count_nonzero(diagonal)))
    matrix = sparse.csr_array(matrix - sparse.diags_array(diagonal, format="csr"))
    return _canonical(_symmetric(matrix))


def _canonical(matrix: sparse.csr_array) -> sparse.csr_array:
    """No zeros stored, indices sorted and of the smallest type: one form for one graph."""
    matrix.eliminate_zeros()
    matrix.sort_indices()
    kind = sparse.get_index_dtype(maxval=max(matrix.nnz, *matrix.shape))
    parts = matrix.data, matrix.indices.astype(kind), matrix.indptr.astype(kind)
    return sparse.csr_array(parts, shape=matrix.shape)


def _symmetric(matrix: sparse.csr_array) -> sparse.csr_array:
    """The same weights, symmetric to the last bit; a directed graph is refused."""
    mirror = matrix.T.tocsr()
    gap = abs(matrix - mirror).tocoo()
    if gap.nnz == 0 or gap.data.max() == 0:
        return matrix
    k = int(np.argmax(gap.data))
    if gap.data[k] > TOLERANCE * np.abs(matrix.data).max():
        i, j = sorted((int(gap.row[k]), int(gap.col[k])))
        raise DataError(
            f"weights is directed: w[{i}, {j}] is {matrix[i, j]:g} but w[{j}, {i}] is "
            f"{matrix[j, i]:g}; make it symmetric with w.maximum(w.T) or w + w.T"
        )
    return (matrix + mirror) * 0.5


def _place(matrix: sparse.csr_array, k: int) -> list[int]:
    row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
    return [row, int(matrix.indices[k])]


def _check_finite(w: np.ndarray, name) -> None:
    bad = np.flatnonzero(~np.isfinite(w))
    if bad.size:
        raise DataError(f"{name(bad[0])} is {w[bad[0]]:g}; weights are finite: leave the edge out")


def _warn_of_loops(n_loops: int) -> None:
    if n_loops:
        warnings.warn(
            f"{n_loops} self-loop(s) dropped: the distance of a row to itself is 0", stacklevel=4
        )


def _finite_number(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if isinstance(value, bool) or not is_number or not np.isfinite(value):
        raise SpecError(f"{name}={value!r} is no finite number; give one, such as 1.0")
    return float(value)
