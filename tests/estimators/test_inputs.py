"""Frames and stores as inputs: their rows are matched by label and id, never by position."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from small_forests import bits, example, forest_of, plane, points

from dforest import Graph, MatrixStore
from dforest.errors import DataError, StoreError
from dforest.store.dataset import Dataset, DatasetWriter
from dforest.store.graph import write_graph
from dforest.store.matrix import MatrixWriter


def frame(X):
    """Rows with names and text labels."""
    return pd.DataFrame(X, [f"row{k}" for k in range(len(X))], list("abc"))


def write_dataset(path, X, ids=None, names=("east", "north")):
    with DatasetWriter(path, dtype="float64", feature_names=names, block_rows=16) as writer:
        writer.write(X, ids=ids)
        writer.publish()
    return path


def write_matrix(path, z, ids=None, symmetric="upper"):
    with MatrixWriter(path, len(z), tile=16, symmetric=symmetric, ids=ids) as writer:
        for a, b in writer.tiles():
            writer.write_tile(a, b, z[writer.span(a, b)].astype(np.float32))
        writer.publish()
    return path


IDS = np.array([f"item{k:02d}" for k in range(40)])


@pytest.mark.parametrize("symmetric", ["upper", "full"])
def test_fit__reads_stores_and_their_paths(tmp_path, symmetric):
    X, z = plane()
    dataset = write_dataset(tmp_path / "x", X)
    matrix = write_matrix(tmp_path / "z", z, symmetric=symmetric)
    expected = forest_of().fit(X, z)
    found = forest_of().fit(str(dataset), matrix)
    np.testing.assert_array_equal(found.pairwise(dataset), expected.pairwise(X))
    assert found.feature_names_in_.tolist() == ["east", "north"]
    same = forest_of().fit(Dataset(dataset), MatrixStore(matrix))
    assert bits(same) == bits(found)
    assert found.score(dataset, matrix) == pytest.approx(expected.score(X, z))


def test_fit__matches_ids_in_another_order(tmp_path):
    X, z = plane()
    order = np.random.default_rng(2).permutation(40)
    dataset = write_dataset(tmp_path / "x", X, IDS)
    matrix = write_matrix(tmp_path / "z", z[np.ix_(order, order)], IDS[order])
    found = forest_of().fit(dataset, matrix)
    np.testing.assert_array_equal(found.pairwise(dataset), forest_of().fit(X, z).pairwise(X))


def test_fit__refuses_other_ids(tmp_path):
    X, z = plane()
    dataset = write_dataset(tmp_path / "x", X, IDS)
    matrix = write_matrix(tmp_path / "z", z, np.where(IDS == "item03", "stranger", IDS))
    with pytest.raises(DataError, match="X has the label 'item03'.* has not but 'stranger'"):
        forest_of().fit(dataset, matrix)


def test_fit__reads_graphs_by_id(tmp_path):
    X, _ = plane()
    links = np.triu(np.random.default_rng(0).random((40, 40)) < 0.2, 1)
    w = sparse.csr_array((links | links.T).astype(float))
    order = np.random.default_rng(2).permutation(40)
    dataset = write_dataset(tmp_path / "x", X, IDS)
    write_graph(tmp_path / "g", w[order][:, order], 3.0, ids=IDS[order])
    expected = forest_of("graph").fit(X, Graph(w, 3.0))
    for notion in ("graph", "precomputed"):
        found = forest_of(notion).fit(dataset, tmp_path / "g")
        np.testing.assert_array_equal(found.pairwise(dataset), expected.pairwise(X))


def test_answers__hold_stores_to_the_names_of_the_fit(tmp_path):
    X, z = plane()
    forest = forest_of().fit(write_dataset(tmp_path / "x", X), z)
    with pytest.raises(StoreError, match="other features than the model was fitted on"):
        forest.apply(write_dataset(tmp_path / "other", X, names=("east", "south")))


@pytest.mark.parametrize("which", ["X", "Z"])
def test_fit__of_a_path_without_a_store_names_it(tmp_path, which):
    X, z = plane()
    given = (tmp_path / "nothing", z) if which == "X" else (X, str(tmp_path / "nothing"))
    with pytest.raises(StoreError, match="nothing"):
        forest_of().fit(*given)


def test_fit__of_a_dataset_in_place_of_a_matrix_says_so(tmp_path):
    X, _ = plane()
    with pytest.raises(StoreError, match="dataset.*matrix|matrix.*dataset"):
        forest_of().fit(X, write_dataset(tmp_path / "x", X))


def test_fit__of_a_matrix_of_two_sets_of_rows_names_both_shapes(tmp_path):
    X, z = plane()
    stored = forest_of().fit(X, z).pairwise(X, X[:9], out=tmp_path / "z")
    with pytest.raises(DataError, match=r"X has 40 rows, Z is \(40, 9\)"):
        forest_of().fit(X, stored)


@pytest.mark.parametrize("kind", ["matrix", "column"])
def test_fit__matches_frames_by_label(kind):
    X = points()
    if kind == "matrix":
        z = example("precomputed", X)[0]
        names = frame(X).index
        Z = pd.DataFrame(z, names, names)
        moved = Z.sample(frac=1, random_state=3).sample(frac=1, axis=1, random_state=4)
        notion = "precomputed"
    else:
        Z = pd.Series(X[:, 0], frame(X).index)
        moved, notion = Z.sample(frac=1, random_state=3), "absolute"
    expected = forest_of(notion).fit(X, Z.to_numpy())
    found = forest_of(notion).fit(frame(X), moved)
    np.testing.assert_array_equal(found.pairwise(frame(X)), expected.pairwise(X))


def test_fit__refuses_labels_that_disagree():
    X, z = frame(points()), example("precomputed", points())[0]
    Z = pd.DataFrame(z, X.index, X.index).rename(index={"row3": "row99"}, columns={"row3": "row99"})
    with pytest.raises(DataError, match="X has the label 'row3', Z.index has not but 'row99'"):
        forest_of().fit(X, Z)
    with pytest.raises(DataError, match="X has the label 'row3'"):
        forest_of("absolute").fit(X, pd.Series(z[0], Z.index))
