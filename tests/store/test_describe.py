"""``describe`` says in plain facts what any store holds; ``check`` reads all of it."""

import json

import numpy as np
import pytest
from scipy import sparse

from dforest.errors import StoreError
from dforest.store.bundle import save_bundle
from dforest.store.dataset import DatasetWriter
from dforest.store.describe import check, describe
from dforest.store.graph import write_graph
from dforest.store.matrix import MatrixWriter


@pytest.fixture
def stores(tmp_path):
    with DatasetWriter(tmp_path / "dataset", feature_names=["x", "y"]) as writer:
        writer.write(np.zeros((3, 2)), labels=["b", "a", "b"])
        writer.publish()
    with MatrixWriter(tmp_path / "matrix", 3, 2) as tiles:
        for a, b in tiles.tiles():
            rows, columns = tiles.span(a, b)
            shape = rows.stop - rows.start, columns.stop - columns.start
            tiles.write_tile(a, b, np.ones(shape, np.float32))
        tiles.publish()
    write_graph(tmp_path / "graph", sparse.csr_array(np.ones((3, 3)) - np.eye(3)), far=2.0)
    save_bundle(tmp_path / "forest", "forest", {"left": np.zeros(4, int)}, {"n_estimators": 9})
    return tmp_path


WANTED = {
    "dataset": {"n_rows": 3, "n_features": 2, "classes": {"a": 1, "b": 2}, "dtype": "float32"},
    "matrix": {"n_rows": 3, "tile": 2, "symmetric": "upper", "largest": 1.0, "has_unknown": False},
    "graph": {"n_rows": 3, "n_edges": 3, "far": 2.0, "density": 1.0},
    "forest": {"n_estimators": 9},
}


@pytest.mark.parametrize("format", WANTED)
def test_describe__says_what_a_store_holds(stores, format):
    said = json.loads(json.dumps(describe(stores / format)))
    assert {key: said[key] for key in WANTED[format]} == WANTED[format]
    assert (said["format"], said["version"], said["generation"]) == (format, 1, "v1")
    assert said["bytes"] > 0
    assert all(entry.keys() == {"dtype", "shape", "block"} for entry in said["arrays"].values())


@pytest.mark.parametrize(
    ("format", "block"),
    [
        ("dataset", "codes/c/0"),
        ("matrix", "z/c/0/1"),
        ("graph", "data/c/0"),
        ("forest", "left/c/0"),
    ],
)
def test_check__reads_every_block(stores, format, block):
    assert check(stores / format) > 0
    (stores / format / "v1" / block).write_bytes(b"")
    with pytest.raises(StoreError, match=f"{block.split('/')[0]}'.* is empty"):
        check(stores / format)


def test_describe__mentions_an_unfinished_writer(tmp_path):
    with MatrixWriter(tmp_path / "z", 3), pytest.raises(StoreError, match="has not finished it"):
        describe(tmp_path / "z")
    with pytest.raises(StoreError, match="does not exist; a dforest store is a folder$"):
        describe(tmp_path / "z")
