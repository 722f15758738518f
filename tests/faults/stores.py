"""Small stores of every format: how to write one, and everything that can be read from it."""

import pathlib

import numpy as np
from scipy import sparse

from dforest.store import schema
from dforest.store.bundle import load_bundle, save_bundle
from dforest.store.dataset import Dataset, DatasetWriter
from dforest.store.graph import read_graph, write_graph
from dforest.store.matrix import MatrixStore, MatrixWriter


def matrix_of(seed: int, n: int = 5) -> np.ndarray:
    """Symmetric distances (n, n) float32, one of them unknown."""
    z = np.random.default_rng(seed).random((n, n), dtype=np.float32)
    z[0, 1] = np.nan
    return np.triu(z) + np.triu(z, 1).T


def write_matrix(path, seed: int, symmetric="upper") -> str:
    """Write a matrix, taking up the tiles that a killed writer of the same one finished."""
    z = matrix_of(seed)
    ids = [f"row {k}" for k in range(len(z))]
    with MatrixWriter(path, len(z), 2, symmetric, ids=ids, resume=f"seed {seed}") as writer:
        for a, b in writer.missing():
            writer.write_tile(a, b, z[writer.span(a, b)])
        writer.publish()
    return schema.fingerprint(path)


def write_full_matrix(path, seed: int) -> str:
    return write_matrix(path, seed, "full")


def write_dataset(path, seed: int, points=np.asarray) -> str:
    rng = np.random.default_rng(seed)
    names = {"feature_names": ["x", "y", "z"], "response_names": ["r"]}
    with DatasetWriter(path, block_rows=2, **names) as writer:
        ids = [f"{seed} {k}" for k in range(3)]
        columns = {"labels": rng.choice(["a", "b"], 3), "response": rng.random(3)}
        writer.write(points(rng.random((3, 3))), ids=ids, **columns)
        writer.publish()
    return schema.fingerprint(path)


def write_sparse_dataset(path, seed: int) -> str:
    return write_dataset(path, seed, lambda x: sparse.csr_array(x * (x > 0.4)))


def update_dataset(path, seed: int) -> str:
    """Add a row to the dataset that is there, unless it is in it."""
    if Dataset(path).n_rows == 3:
        rng = np.random.default_rng(seed)
        with DatasetWriter(path, update=True) as writer:
            writer.write(rng.random((1, 3)), ids=["new"], labels=["c"], response=rng.random(1))
            writer.publish()
    return schema.fingerprint(path)


def write_links(path, seed: int) -> str:
    w = np.triu(np.random.default_rng(seed).random((5, 5)), 1)
    write_graph(path, sparse.csr_array(w + w.T), far=2.0, ids=list("abcde"))
    return schema.fingerprint(path)


def write_model(path, seed: int) -> str:
    rng = np.random.default_rng(seed)
    arrays = {"left": rng.random(7), "names": np.array(["a", "bc"]), "none": np.empty((0, 2))}
    save_bundle(path, "forest", arrays, {"n_estimators": seed})
    return schema.fingerprint(path)


WRITERS = {
    "matrix": write_matrix,
    "full matrix": write_full_matrix,
    "dataset": write_dataset,
    "sparse dataset": write_sparse_dataset,
    "graph": write_links,
    "model": write_model,
}


def read_all(path, generation: str | None = None) -> list:
    """Everything that a store says, in plain values that compare bit by bit."""
    said = schema.read_pointer(path)
    held = [str(schema.facts(schema.open_group(path, generation=generation)))]
    held += [said["fingerprint"]] if generation is None else []
    match said["format"]:
        case "matrix":
            store = MatrixStore(path, generation)
            sides = range(-(-store.n_rows // store.tile))
            tiles = [_bits(store.read_tile(a, b)) for a in sides for b in sides]
            return [*held, *tiles, _bits(store.ids), store.largest, store.has_unknown]
        case "dataset":
            store = Dataset(path, generation)
            columns = [store.ids, store.labels, store.response, store.points.read()]
            return [*held, *map(_bits, columns), store.class_counts()]
        case "graph":
            graph = read_graph(path)
            return [*held, *(_bits(part) for part in graph)]
        case _:
            arrays, facts = load_bundle(path, said["format"])
            return [*held, {name: _bits(array) for name, array in arrays.items()}, facts]


def _bits(value):
    if sparse.issparse(value):
        return [_bits(part) for part in (value.data, value.indices, value.indptr)]
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value


def files_of(folder) -> list[pathlib.Path]:
    """All files below a folder, in order."""
    return sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file())
