"""What job files point at: stores, and files of numpy and scipy that need none."""

import math
import pathlib
import zipfile
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dforest.arrays import Graph
from dforest.errors import DataError, SpecError
from dforest.estimators.inputs import read_links as read_store
from dforest.store import schema
from dforest.store.dataset import Dataset
from dforest.store.matrix import MatrixStore


class Look(NamedTuple):
    """What is seen of an input without reading it."""

    n_rows: int
    n_columns: int
    n_bytes: int  # to read
    names: tuple[str, ...] | None = None


def look_at(path: pathlib.Path, key: str, format: str) -> Look:
    """Shape and size of a store of ``format`` (dataset, graph or matrix), or of a file.

    Raises
    ------
    SpecError
        There is nothing there, or a file of another kind; names the job's key.
    """
    if not path.exists():
        raise SpecError(f"{key}: {path} does not exist")
    if path.is_dir():
        return _look_at_store(path, format)
    if path.suffix == ".npz" and format != "matrix":
        shape = _npz(path, key)["shape"]
    elif path.suffix == ".npy" and format != "graph":
        shape = np.asarray(_npy(path, key).shape)
    else:
        takes = {"dataset": ".npy, scipy's .npz", "graph": "scipy's .npz", "matrix": ".npy"}
        raise SpecError(
            f"{key}: {path} is no {format} store and no {takes[format]} file; "
            f"make a store of it: dforest ingest {path} {path.with_suffix('.zarr')}"
        )
    if len(shape) != 2:
        raise DataError(f"{key}: {path} has shape {tuple(shape)}; it must have rows and columns")
    return Look(int(shape[0]), int(shape[1]), path.stat().st_size)


def _look_at_store(path: pathlib.Path, format: str) -> Look:
    said = schema.facts(schema.open_group(path, format))
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    if format == "dataset":
        names = said["feature_names"]
        return Look(said["n_rows"], said["n_features"], size, names and tuple(names))
    return Look(said["n_rows"], said.get("n_columns", said["n_rows"]), size)


def check_folds(folds: int, n_rows: int) -> None:
    """Refuse more folds than rows; SpecError names the job's key."""
    if folds > n_rows:
        raise SpecError(f"evaluate.folds: {folds} is more than the {n_rows} rows; give fewer")


def read_points(path: pathlib.Path) -> np.ndarray | sparse.csr_array:
    """Features of all rows: (n, p), dense or sparse as they were stored."""
    if path.is_dir():
        return Dataset(path).points.read()
    return _csr(path, "points") if path.suffix == ".npz" else np.array(_npy(path, "points"))


def held_bytes(path: pathlib.Path) -> int:
    """Bytes of the features of all rows in memory, dense or sparse as they are stored."""
    if path.is_dir():
        return Dataset(path).points.nbytes
    if path.suffix == ".npy":
        return _npy(path, "points").nbytes
    with _npz(path, "points") as found:  # values, and the column of each
        return int(found["indptr"][-1]) * (found["data"].itemsize + 8)


def read_links(path: pathlib.Path, points: pathlib.Path) -> Graph:
    """Links of all rows, checked to have no direction; self-loops of a file are dropped.

    The ids of a store are matched to those of the store of points, where both have them.
    """
    if path.is_dir():
        return read_store(path, Dataset(points).ids if points.is_dir() else None)
    try:
        return Graph(_csr(path, "graph"))
    except DataError as error:
        raise DataError(f"graph: {path}: {error}") from None


def matrix_at(path: pathlib.Path) -> MatrixStore | np.ndarray:
    """Distances: a store that is read by tiles, or a file's array, mapped into memory."""
    return MatrixStore(path) if path.is_dir() else _npy(path, "matrix")


def column_of(path: pathlib.Path, name: str) -> np.ndarray:
    """Labels or response of a dataset store.

    Raises
    ------
    SpecError
        It has none.
    """
    values = getattr(Dataset(path), name) if path.is_dir() else None
    if values is None:
        raise SpecError(f"points: {path} has no {name}, which this distance is learned from")
    return values


def most_telling(importances, names: tuple[str, ...] | None, noun: str, n: int) -> list[dict]:
    """Return the n features with the largest share of the gain, the largest first."""
    order = np.argsort(-np.asarray(importances), kind="stable")[:n]
    label = (lambda k: names[k]) if names else (lambda k: f"{noun} {k}")
    return [{"feature": label(int(k)), "share": float(importances[k])} for k in order]


def telling_as_text(telling: list[dict[str, Any]]) -> list[str]:
    """Lines for people."""
    rows = (f"  {one['feature']:24} {one['share']:.4f}" for one in telling)
    return ["Most telling, by share of the gain", *rows]


def dense_bytes(look: Look) -> int:
    """Memory of the rows as codes in both orders and as float64."""
    return 12 * math.prod(look[:2])


def _npy(path: pathlib.Path, key: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{key}: {path} is no .npy file of numbers ({error})") from None


def _npz(path: pathlib.Path, key: str) -> Any:
    try:
        found = np.load(path, allow_pickle=False)
        names = set(found.files)
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise DataError(f"{key}: {path} is no .npz file ({error})") from None
    if not {"format", "shape", "data"} <= names:
        raise DataError(
            f"{key}: {path} holds {', '.join(sorted(names))}, no sparse matrix; "
            "write it with scipy.sparse.save_npz"
        )
    return found


def _csr(path: pathlib.Path, key: str) -> sparse.csr_array:
    _npz(path, key).close()
    try:
        return sparse.csr_array(sparse.load_npz(path))
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{key}: {path} cannot be read as a sparse matrix ({error})") from None
