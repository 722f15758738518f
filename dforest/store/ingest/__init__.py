"""Bring files of other programs into dforest's stores, block by block."""

import dataclasses
import pathlib
import warnings
from typing import Literal

import numpy as np
from scipy import sparse

from dforest.errors import DataError, SpecError, StoreError
from dforest.store import schema, tiles
from dforest.store.dataset import Dataset
from dforest.store.graph import write_graph
from dforest.store.ingest import edges, squares, tables, writing
from dforest.store.ingest.members import Members, read_points
from dforest.store.ingest.tables import Columns

Kind = Literal["auto", "points", "matrix", "graph"]
TEXT = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
NUMPY = (".npy", ".npz")


def ingest(
    source,
    path,
    *,
    kind: Kind = "auto",
    key: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    response_columns=(),
    feature_columns=None,
    n_rows: int | None = None,
    like=None,
    far: float = 1.0,
    symmetric: tiles.Symmetry = "upper",
    dtype: Literal["float32", "float64"] = "float32",
    update: bool = False,
    progress: writing.Progress | None = None,
) -> dict:
    r"""Read a file into a dataset, a matrix or a graph store at ``path``, whole or absent.

    Parameters
    ----------
    source : path-like
        ``.csv``, ``.tsv``, ``.txt`` (also with ``.gz``), ``.npy``, ``.npz``, ``.parquet``.
    path : path-like
        A store of the same kind that is there is replaced in one step.
    kind : {"auto", "points", "matrix", "graph"}
        "auto" takes what the file can only be: a square text file with the same labels on rows and
        columns, or with numbers only, and a square array are a matrix; a square sparse matrix
        and a member named ``edges`` are a graph; anything else is points.
    key : str, optional
        Member of an ``.npz``; see `dforest.store.ingest.members` for how one holds sparse arrays.
    id_column, label_column : str, optional
        Column (or member of the ``.npz``) that names the rows, or that holds their classes.
    response_columns, feature_columns : sequence of str, optional
        Features are all columns that have no other part, unless given. Empty cells are NaN.
    n_rows : int, optional
        Of a graph whose edges end in row numbers.
    like : path-like, optional
        A dataset whose ids are the ends of the edges: row k of the graph is its row k.
    far : float
        Distance of two rows of a graph that have no edge.
    symmetric : {"upper", "full"}
        How a matrix is stored; see `dforest.store.matrix.MatrixWriter`.
    dtype : {"float32", "float64"}
        Of points. float32 keeps 7 digits; values that differ less become equal.
    update : bool
        Add the rows whose ids are not in the dataset at ``path``; the others must be as stored.
    progress : callable (done, total), optional
        Called after each block, in bytes of text or in rows; ``total`` may be None.

    Returns
    -------
    dict
        What the store says about itself, and ``new_rows`` for a dataset.

    Raises
    ------
    DataError
        If the source does not hold what it should; names the file, the row and the column.
    SpecError
        If a column, key or option does not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("name,width,height,kind\nr1,3,0.5,flat\nr2,3,,tall\n")
    >>> facts = ingest(folder / "a.csv", folder / "a", id_column="name", label_column="kind")
    >>> facts["n_rows"], facts["feature_names"], facts["n_missing"]
    (2, ['width', 'height'], 1)
    """
    if not pathlib.Path(source).is_file():
        raise StoreError(f"{source} does not exist or is not a file")
    if kind not in ("auto", "points", "matrix", "graph"):
        raise SpecError(f"kind must be 'auto', 'points', 'matrix' or 'graph', got {kind!r}")
    if symmetric not in ("upper", "full"):
        raise SpecError(f"symmetric must be 'upper' or 'full', got {symmetric!r}")
    features = None if feature_columns is None else tuple(feature_columns)
    columns = Columns(id_column, label_column, tuple(response_columns), features)
    request = _Request(
        pathlib.Path(source), pathlib.Path(path), kind, key, columns, n_rows, like, far, symmetric,
        dtype, update, progress or (lambda done, total: None),
    )  # fmt: skip
    new = request.read()
    facts = schema.facts(schema.open_group(path)) | new
    if facts.get("n_loops"):
        warnings.warn(
            f"{source}: {facts['n_loops']} edges from a row to itself were dropped", stacklevel=2
        )
    return facts


@dataclasses.dataclass(frozen=True)
class _Request:
    """What `ingest` was asked for; each method reads or writes one kind of thing."""

    source: pathlib.Path
    path: pathlib.Path
    kind: Kind
    key: str | None
    columns: Columns
    n_rows: int | None
    like: str | None
    far: float
    symmetric: tiles.Symmetry
    dtype: str
    update: bool
    progress: writing.Progress

    def read(self) -> dict:
        source = self.source
        suffix = (source.with_suffix("") if source.suffix == ".gz" else source).suffix.lower()
        if suffix in NUMPY:
            with Members(source) as members:
                return self.read_numpy(members)
        if self.key is not None:
            raise SpecError(f"key={self.key!r} names a member of an .npz, but this is {source}")
        if suffix in TEXT:
            return self.read_text()
        if suffix not in PARQUET:
            known = ", ".join((*TEXT, *NUMPY, *PARQUET))
            raise SpecError(f"{source}: no reader for {suffix!r}; there are readers for {known}")
        if self.kind not in ("auto", "points"):
            raise SpecError(f"{source}: Parquet holds points, no {self.kind}; use .csv or .npz")
        return self.write_points(tables.read_parquet(source, self.columns))

    def read_text(self) -> dict:
        source, kind = self.source, self.kind
        if kind == "auto":
            is_matrix = not self.columns.given and squares.looks_like_matrix(source)
            kind = "matrix" if is_matrix else "points"
        if kind == "points":
            return self.write_points(tables.read_text(source, self.columns))
        if kind == "graph" and edges.is_edge_list(source):
            return self.write_named_edges(*edges.read_edges(source))
        square = squares.Square(source)
        if kind == "matrix":
            return self.write_matrix(square.rows(), square.n, square.labels)
        weights = [sparse.csr_array(row) for row in square.rows()]
        return self.write_adjacency(sparse.vstack(weights, format="csr"), square.labels)

    def read_numpy(self, members: Members) -> dict:
        name = members.choose(self.key)
        shape, is_sparse = members.shape(name), members.is_sparse(name)
        is_square = len(shape) == 2 and shape[0] == shape[1]
        kind = self.kind
        if kind == "auto" and (name == "edges" or is_square):
            kind = "graph" if is_sparse or name == "edges" else "matrix"
        if kind in ("auto", "points"):
            return self.write_points(read_points(members, name, self.columns))
        ids = members.column(self.columns.id_column)
        if kind == "matrix":
            if is_sparse or not is_square:
                raise DataError(
                    f"{self.source}: a matrix is a square dense array, got shape {shape}; "
                    "scipy.spatial.distance.squareform makes a condensed one square"
                )
            return self.write_matrix(members.rows(name, max(1, 2**22 // shape[1])), shape[0], ids)
        if is_sparse:
            return self.write_adjacency(members.csr(name), ids)
        if len(shape) != 2 or shape[1] not in (2, 3):
            raise DataError(f"{self.source}: edges are (m, 2) or (m, 3), got shape {shape}")
        beside = members.column(self.columns.label_column) if ids is None else ids
        n_rows = self.n_rows if beside is None else len(beside)
        return self.write_numbered_edges(members.vector(name), n_rows, ids)

    def write_points(self, source: tables.Source) -> dict:
        if self.update and self.path.exists():
            return {"new_rows": writing.update_points(source, self.path, self.progress)}
        return {"new_rows": writing.write_points(source, self.path, self.dtype, self.progress)}

    def write_matrix(self, rows, n: int, ids) -> dict:
        self.refuse_update("matrix")
        writing.write_matrix(rows, n, self.path, ids, self.symmetric, self.progress)
        return {}

    def write_named_edges(self, ends: np.ndarray, weights: np.ndarray) -> dict:
        """Edges between names, which become ids; between row numbers if ``n_rows`` is given."""
        if self.n_rows is not None:
            table = np.column_stack([edges.as_row_numbers(ends, self.n_rows)[0], weights])
            return self.write_numbered_edges(table, self.n_rows, None)
        known = None if self.like is None else Dataset(self.like).ids
        if self.like is not None and known is None:
            raise SpecError(f"{self.like} has no ids to find edges' ends by; give n_rows instead")
        numbers, ids = edges.number_ends(ends, known)
        return self.write_graph(*edges.as_weights(numbers, weights, len(ids)), ids)

    def write_numbered_edges(self, table: np.ndarray, n_rows: int | None, ids) -> dict:
        numbers, n = edges.as_row_numbers(table[:, :2], n_rows)
        weights = table[:, 2].astype(np.float64) if table.shape[1] == 3 else np.ones(len(table))
        return self.write_graph(*edges.as_weights(numbers, weights, n), ids)

    def write_adjacency(self, weights, ids) -> dict:
        if weights.shape[0] != weights.shape[1]:
            raise DataError(f"{self.source}: weights must be square, got shape {weights.shape}")
        weights = sparse.csr_array(weights, dtype=np.float64)
        diagonal = weights.diagonal()
        return self.write_graph(
            weights - sparse.diags_array(diagonal), int((diagonal != 0).sum()), ids
        )

    def write_graph(self, weights, n_loops: int, ids) -> dict:
        self.refuse_update("graph")
        write_graph(self.path, weights, self.far, ids=ids, n_loops=n_loops)
        return {}

    def refuse_update(self, kind: str) -> None:
        if self.update:
            raise SpecError(f"{self.path}: update adds rows to a dataset; a {kind} is written anew")
