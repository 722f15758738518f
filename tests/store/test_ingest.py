"""Files of other programs become stores that hold the same, or one clear line says why not."""

import gzip
import os

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from dforest.errors import DataError, SpecError, StoreError
from dforest.store import schema
from dforest.store.dataset import Dataset
from dforest.store.graph import read_graph
from dforest.store.ingest import ingest, tables, writing
from dforest.store.matrix import MatrixStore

TABLE = """name,width,height,kind,weight
r1,3,0.5,flat,10
r2, 3.5 ,,tall,20
"r 3",-4e2,NA,flat,30
"""
PARTS = {"id_column": "name", "label_column": "kind", "response_columns": ["weight"]}


@pytest.fixture
def file(tmp_path):
    """Write a text file and return its path."""

    def write(text, name="source.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def check_table(path):
    data = Dataset(path)
    np.testing.assert_array_equal(data.points.read(), [[3, 0.5], [3.5, np.nan], [-400, np.nan]])
    assert data.ids.tolist() == ["r1", "r2", "r 3"]
    assert data.labels.tolist() == ["flat", "tall", "flat"]
    assert data.response.tolist() == [[10], [20], [30]]
    assert data.feature_names == ("width", "height")


def test_csv__gives_every_column_its_part(file, tmp_path):
    facts = ingest(file(TABLE), tmp_path / "d", **PARTS)
    check_table(tmp_path / "d")
    assert (facts["n_rows"], facts["n_missing"], facts["new_rows"]) == (3, 2, 3)


@pytest.mark.parametrize("cells", [1, 5, 10, 15])
def test_csv__is_the_same_in_any_blocks(file, tmp_path, monkeypatch, cells):
    monkeypatch.setattr(tables, "CELLS", cells)
    ingest(file(TABLE), tmp_path / "d", **PARTS)
    check_table(tmp_path / "d")


@pytest.mark.parametrize("mark", [";", "\t"])
def test_csv__may_be_split_by_other_marks_zipped_and_with_a_bom(tmp_path, mark):
    text = "\ufeff" + TABLE.replace(",", mark).replace("\n", "\r\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    ingest(tmp_path / "t.csv.gz", tmp_path / "d", **PARTS)
    check_table(tmp_path / "d")


def test_csv__written_by_a_data_frame_keeps_its_index_as_ids(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]}, index=["x", "y"])
    frame.to_csv(tmp_path / "t.csv")
    ingest(tmp_path / "t.csv", tmp_path / "d")
    assert Dataset(tmp_path / "d").ids.tolist() == ["x", "y"]
    assert Dataset(tmp_path / "d").feature_names == ("a", "b")


def test_csv__reports_progress_in_bytes(file, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "CELLS", 5)
    seen = []
    source = file(TABLE)
    ingest(source, tmp_path / "d", **PARTS, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) == 3
    assert seen[-1] == (source.stat().st_size,) * 2


def test_feature_columns__are_chosen_in_order_and_dtype_is_kept(file, tmp_path):
    ingest(
        file("a,b,c\n1,x,16777217\n"), tmp_path / "d", feature_columns=["c", "a"], dtype="float64"
    )
    assert Dataset(tmp_path / "d").points.read().tolist() == [[16777217.0, 1.0]]


BAD_TABLES = {
    "a,b\n1,2\n3,x\n": "column 'b', row 1: 'x' is not a number; name it as id_column",
    "a,b\n1,2\n3\n": "row 1 has 1 cells, the header has 2",
    "a,a\n1,2\n": "column 'a' is there twice",
    "1.5,2\n3,4\n5,6\n": "first line holds numbers .*needs a header",
    "": "is empty",
    "a,b\n": "no rows",
    "a,b\n1e39,1\n": "row 0, feature 0: 1e\\+39 is beyond float32",
}


@pytest.mark.parametrize("text", BAD_TABLES)
def test_csv__that_is_wrong_is_refused_in_one_line(file, tmp_path, text):
    source = file(text)
    with pytest.raises(DataError, match=BAD_TABLES[text]) as caught:
        ingest(source, tmp_path / "d", kind="points")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == [source.name]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"id_column": "nme"}, "has no column 'nme'; it has 'name', 'width'"),
        ({"kind": "tensor"}, "kind must be"),
        ({"symmetric": "none"}, "symmetric must be"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"key": "X"}, "names a member of an .npz"),
    ],
)
def test_options__that_are_wrong_are_refused(file, tmp_path, options, error):
    with pytest.raises(SpecError, match=error):
        ingest(file(TABLE), tmp_path / "d", **({"kind": "points"} | options))


def test_csv__with_a_missing_id_or_label_names_the_row(file, tmp_path):
    with pytest.raises(DataError, match="column 'id', row 1 is missing"):
        ingest(file("id,a\nx,1\n,2\n"), tmp_path / "d", id_column="id")
    with pytest.raises(DataError, match="id 'x' names rows 0 and 1"):
        ingest(file("id,a\nx,1\nx,2\n"), tmp_path / "d", id_column="id")


def test_sources__that_cannot_be_read_are_named(file, tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        ingest(tmp_path / "nothing.csv", tmp_path / "d")
    with pytest.raises(SpecError, match="no reader for '.xls'; there are readers for .csv"):
        ingest(file("x", "a.xls"), tmp_path / "d")
    (tmp_path / "bad.csv").write_bytes(b"a,b\n\xff\xfe,2\n")
    with pytest.raises(DataError, match="not UTF-8"):
        ingest(tmp_path / "bad.csv", tmp_path / "d")
    with pytest.raises(StoreError, match="cannot be read as numpy's"):
        ingest(file("not numpy", "a.npz"), tmp_path / "d")


def test_update__adds_only_rows_with_new_ids(file, tmp_path):
    lines = TABLE.splitlines(keepends=True)
    options = {**PARTS, "update": True}
    assert ingest(file("".join(lines[:2])), tmp_path / "d", **options)["new_rows"] == 1
    assert ingest(file(TABLE), tmp_path / "d", **options)["new_rows"] == 2
    check_table(tmp_path / "d")
    before = schema.fingerprint(tmp_path / "d")
    assert ingest(file(TABLE), tmp_path / "d", **options)["new_rows"] == 0
    assert schema.fingerprint(tmp_path / "d") == before
    ingest(file(TABLE), tmp_path / "once", **PARTS)
    assert schema.fingerprint(tmp_path / "once") == before


def test_update__takes_columns_by_name_and_refuses_changed_rows(file, tmp_path):
    ingest(file("id,a,b\nx,1,\n"), tmp_path / "d", id_column="id")
    ingest(file("b,id,a\n,x,1\n4,y,3\n"), tmp_path / "d", id_column="id", update=True)
    np.testing.assert_array_equal(Dataset(tmp_path / "d").points.read(), [[1, np.nan], [3, 4]])
    with pytest.raises(DataError, match="row 'y' is not as it is stored .1 such"):
        ingest(file("id,a,b\nx,1,\ny,3,5\n"), tmp_path / "d", id_column="id", update=True)
    with pytest.raises(DataError, match="feature 'c' is only in the source"):
        ingest(file("id,a,b,c\nz,1,2,3\n"), tmp_path / "d", id_column="id", update=True)
    with pytest.raises(SpecError, match="name the id_column"):
        ingest(file("a,b\n1,2\n"), tmp_path / "d", update=True)
    assert Dataset(tmp_path / "d").n_rows == 2


def test_parquet__equals_csv(file, tmp_path):
    frame = pd.read_csv(file(TABLE), skipinitialspace=True)
    frame["kind"] = frame["kind"].astype("category")
    frame.to_parquet(tmp_path / "t.parquet")
    ingest(tmp_path / "t.parquet", tmp_path / "p", **PARTS)
    check_table(tmp_path / "p")


def test_parquet__needs_its_extra(tmp_path, monkeypatch):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(tables, "parquet", None)
    with pytest.raises(SpecError, match=r"pip install dforest\[parquet\]"):
        ingest(tmp_path / "t.parquet", tmp_path / "d")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "?"])
def test_numpy_files__are_read_in_any_form(tmp_path, monkeypatch, order, save, dtype):
    monkeypatch.setattr("dforest.store.points.BLOCK_BYTES", 40)
    points = np.array(np.arange(21).reshape(7, 3), dtype, order=order)
    source = tmp_path / ("x.npy" if save is np.save else "x.npz")
    save(source, points)
    ingest(source, tmp_path / "d")
    np.testing.assert_array_equal(Dataset(tmp_path / "d").points.read(), points)


def test_npz__names_its_members(tmp_path):
    points, edges = np.arange(8.0).reshape(4, 2), np.array([[0, 1], [1, 2], [1, 1]])
    labels, y = np.array([3, 1, 3, 1]), np.arange(8.0).reshape(4, 2)
    np.savez(tmp_path / "a.npz", X=points, edges=edges, labels=labels, y=y)
    with pytest.raises(SpecError, match="holds 'X', 'edges', 'y'; name the one to ingest"):
        ingest(tmp_path / "a.npz", tmp_path / "d")
    with pytest.raises(SpecError, match="no member 'Z'"):
        ingest(tmp_path / "a.npz", tmp_path / "d", key="Z")
    options = {"key": "X", "label_column": "labels", "response_columns": ["y"]}
    facts = ingest(tmp_path / "a.npz", tmp_path / "d", **options)
    assert Dataset(tmp_path / "d").labels.tolist() == labels.tolist()
    assert Dataset(tmp_path / "d").response.tolist() == y.tolist()
    assert facts["response_names"] == ["y_0", "y_1"]
    with pytest.raises(DataError, match=r"'edges' has shape \(3, 2\), the points have 4 rows"):
        ingest(tmp_path / "a.npz", tmp_path / "d", key="X", response_columns=["edges"])
    with pytest.warns(UserWarning, match="1 edges from a row to itself were dropped"):
        facts = ingest(tmp_path / "a.npz", tmp_path / "g", key="edges", label_column="labels")
    assert (facts["n_rows"], facts["n_edges"], facts["n_loops"]) == (4, 2, 1)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_sparse_npz__is_points_or_a_graph(tmp_path, format):
    points = sparse.random_array((6, 4), density=0.4, rng=0, format=format)
    sparse.save_npz(tmp_path / "x.npz", points)
    ingest(tmp_path / "x.npz", tmp_path / "d", dtype="float64")
    assert (Dataset(tmp_path / "d").points.read() != points.tocsr()).nnz == 0
    with pytest.raises(DataError, match="must be square"):
        ingest(tmp_path / "x.npz", tmp_path / "g", kind="graph")
    square = sparse.random_array((5, 5), density=0.4, rng=0, format=format)
    sparse.save_npz(tmp_path / "w.npz", square)
    with pytest.raises(DataError, match="graph is directed"):
        ingest(tmp_path / "w.npz", tmp_path / "g")
    both = square + square.T
    without_loops = sparse.csr_array(both) - sparse.diags_array(both.diagonal())
    sparse.save_npz(tmp_path / "w.npz", without_loops.asformat(format))
    ingest(tmp_path / "w.npz", tmp_path / "g")
    assert (read_graph(tmp_path / "g").weights != without_loops).nnz == 0


def test_named_sparse_members__are_one_array(tmp_path):
    X = sparse.random_array((6, 9), density=0.3, rng=1, dtype=np.float32).tocsr()
    edges = np.array([[0, 5], [2, 1]], np.int32)
    parts = {"X_data": X.data, "X_indices": X.indices, "X_indptr": X.indptr, "X_shape": X.shape}
    np.savez_compressed(tmp_path / "cora.npz", **parts, edges=edges, labels=np.arange(6) % 2)
    ingest(tmp_path / "cora.npz", tmp_path / "d", key="X", label_column="labels")
    data = Dataset(tmp_path / "d")
    assert data.points.is_sparse
    assert (data.points.read() != X).nnz == 0
    facts = ingest(tmp_path / "cora.npz", tmp_path / "g", key="edges", far=2.0)
    assert (facts["format"], facts["n_rows"], facts["n_edges"], facts["far"]) == (
        "graph",
        6,
        2,
        2.0,
    )


EDGES = {
    "names": ("a,b\nb,c\nb,a\n", ["a", "b", "c"]),
    "numbers": ("10,9\n9,100\n", ["9", "10", "100"]),
    "a header": ("source,target\n10,9\n9,100\n", ["9", "10", "100"]),
    "an odd header": ("paper,cites\n10,9\n9,100\n", ["9", "10", "100"]),
    "ends that look like a header": ("i,j\nj,k\n", ["i", "j", "k"]),
    "weights": ("x y 1.5\ny z 2\nx y 1.5\n", ["x", "y", "z"]),
    "weights and a header": ("p,q,strength\nx,y,1.5\ny,z,2\n", ["x", "y", "z"]),
}


@pytest.mark.parametrize("case", EDGES)
def test_edge_lists__name_the_rows(file, tmp_path, case):
    text, ids = EDGES[case]
    ingest(file(text), tmp_path / "g", kind="graph")
    graph = read_graph(tmp_path / "g")
    assert graph.ids.tolist() == ids
    assert graph.weights.nnz == 4
    if "weights" in case:
        assert graph.weights[[0, 1], [1, 2]].tolist() == [1.5, 2]


def test_edge_lists__follow_a_dataset_or_a_number_of_rows(file, tmp_path):
    ingest(file("id,a\nc,1\nb,2\na,3\nd,4\n"), tmp_path / "d", id_column="id")
    ingest(file("a,b\nb,c\n"), tmp_path / "g", kind="graph", like=tmp_path / "d")
    graph = read_graph(tmp_path / "g")
    assert graph.ids.tolist() == ["c", "b", "a", "d"]
    assert graph.weights.toarray()[1].tolist() == [1, 0, 1, 0]
    with pytest.raises(DataError, match="ends in 'e', which is no row's id"):
        ingest(file("a,e\n"), tmp_path / "g", kind="graph", like=tmp_path / "d")
    ingest(file("0,2\n"), tmp_path / "g", kind="graph", n_rows=4)
    assert read_graph(tmp_path / "g").weights.shape == (4, 4)
    with pytest.raises(DataError, match=r"ends in row 4, but there are rows 0..3"):
        ingest(file("0,4\n"), tmp_path / "g", kind="graph", n_rows=4)
    with pytest.raises(DataError, match="row numbers"):
        ingest(file("a,b\n"), tmp_path / "g", kind="graph", n_rows=4)


def test_edge_lists__that_disagree_are_refused(file, tmp_path):
    with pytest.raises(DataError, match="weighs 1 and 2; a graph is undirected"):
        ingest(file("a,b,1\nb,a,2\n"), tmp_path / "g", kind="graph")
    with pytest.raises(DataError, match="2 or 3 columns|not square"):
        ingest(file("a,b,1,2\n"), tmp_path / "g", kind="graph")
    with pytest.raises(DataError, match="'x' is not a number"):
        ingest(file("a,b,1\nb,c,x\n"), tmp_path / "g", kind="graph")
    with pytest.raises(SpecError, match="update adds rows to a dataset"):
        ingest(file("a,b\n"), tmp_path / "g", kind="graph", update=True)


def test_a_square_of_weights__is_a_graph(file, tmp_path):
    ingest(file("0 1 0 0\n1 0 2 0\n0 2 0 0\n0 0 0 0\n"), tmp_path / "g", kind="graph")
    assert read_graph(tmp_path / "g").weights.toarray()[1].tolist() == [1, 0, 2, 0]


Z = np.array([[0, 1.5, 2, 7], [1.5, 0.25, -3, np.nan], [2, -3, 0, 1], [7, np.nan, 1, 0]])
NAMES = ["a", "b", "c", "9"]


def square_text(mark, header, row_labels, corner=""):
    unknown = "" if mark == "," else "nan"
    lines = [[unknown if np.isnan(v) else str(v) for v in row] for row in Z]
    if row_labels:
        lines = [[name, *line] for name, line in zip(NAMES, lines)]
    if header:
        lines = [[*([corner] if corner is not None and row_labels else []), *NAMES], *lines]
    return "\n".join(mark.join(line) for line in lines) + "\n\n"


@pytest.mark.parametrize("symmetric", ["upper", "full"])
@pytest.mark.parametrize(
    ("text", "labelled"),
    [
        (square_text(",", False, False), False),
        (square_text(" ", False, False), False),
        (square_text(",", True, True), True),
        (square_text(" ", True, True, corner="id"), True),
        (square_text("\t", True, True, corner=None), True),
        (square_text(",", True, False), True),
        (square_text(",", False, True), True),
    ],
)
def test_square_text__is_a_matrix(file, tmp_path, monkeypatch, text, labelled, symmetric):
    monkeypatch.setattr("dforest.store.tiles.TILE", 3)
    monkeypatch.setattr(writing, "MIN_TILE", 3)
    kind = "auto" if "a,b" not in text.split("\n")[0] or text.startswith(",") else "matrix"
    facts = ingest(file(text), tmp_path / "z", kind=kind, symmetric=symmetric)
    store = MatrixStore(tmp_path / "z")
    np.testing.assert_array_equal(store[:, :], Z.astype(np.float32))
    assert (store.ids is not None) == labelled
    assert not labelled or store.ids.tolist() == NAMES
    assert (facts["largest"], facts["has_unknown"], facts["tile"]) == (7.0, True, 3)


BAD_SQUARES = {
    "0,1,2\n1,0,3\n2,4,0\n": r"worst at z\[1, 2\] = 3 but z\[2, 1\] = 4.*Z = \(Z \+ Z.T\) / 2",
    "0,1,\n1,0,3\n2,3,0\n": r"worst at z\[0, 2\] = nan but z\[2, 0\] = 2",
    "0,1,2\n1,0,3\n": "not square: 2 lines of 3 to 3 cells",
    ",a,b\na,0,1\nc,1,0\n": "row 1 is labelled 'c', but column 1 'b'",
    ",a,a\na,0,1\na,1,0\n": "id 'a' names rows 0 and 1",
    "0,inf\ninf,0\n": r"distance \(0, 1\) = inf is beyond float32",
    "0,x1\nx1,0\n": "row 0, column 1: 'x1' is not a number|not square",
    "0,1\n1\n": "not square|row 1 has 1 numbers, not 2",
}


@pytest.mark.parametrize("text", BAD_SQUARES)
def test_squares__that_are_wrong_are_refused(file, tmp_path, text):
    source = file(text)
    with pytest.raises(DataError, match=BAD_SQUARES[text]):
        ingest(source, tmp_path / "z", kind="matrix")
    assert os.listdir(tmp_path) == [source.name]


@pytest.mark.parametrize("worst", [(0, 8), (3, 5), (7, 8), (4, 3)])
def test_the_worst_pair__is_found_across_tiles(tmp_path, monkeypatch, worst):
    monkeypatch.setattr("dforest.store.tiles.TILE", 2)
    monkeypatch.setattr(writing, "MIN_TILE", 2)
    rng = np.random.default_rng(0)
    z = rng.random((9, 9)) * 1e-3
    z += z.T
    z[1, 6] += 0.25
    z[worst] += 0.5
    np.save(tmp_path / "z.npy", z)
    i, j = sorted(worst)
    with pytest.raises(DataError, match=rf"worst at z\[({i}, {j}|{j}, {i})\]"):
        ingest(tmp_path / "z.npy", tmp_path / "z")


def test_rounding__is_no_asymmetry(tmp_path):
    z = np.random.default_rng(0).random((9, 9))
    z += z.T
    np.save(tmp_path / "z.npy", z + np.triu(np.full((9, 9), 1e-7), 1))
    ingest(tmp_path / "z.npy", tmp_path / "z")
    stored = MatrixStore(tmp_path / "z")[:, :]
    np.testing.assert_array_equal(stored, stored.T)
    np.testing.assert_allclose(stored, z, atol=1e-6)


def test_square_arrays__are_matrices_unless_said_otherwise(tmp_path):
    np.savez_compressed(tmp_path / "z.npz", z=np.eye(4), names=np.array(["p", "q", "r", "s"]))
    assert ingest(tmp_path / "z.npz", tmp_path / "z", id_column="names")["format"] == "matrix"
    assert MatrixStore(tmp_path / "z").ids.tolist() == ["p", "q", "r", "s"]
    assert ingest(tmp_path / "z.npz", tmp_path / "d", kind="points")["format"] == "dataset"
    np.save(tmp_path / "condensed.npy", np.zeros(6))
    with pytest.raises(DataError, match="squareform"):
        ingest(tmp_path / "condensed.npy", tmp_path / "z", kind="matrix")
