"""What the benchmarks run on: real data where it is found, and tasks made up from a seed."""

import os
import pathlib
from typing import NamedTuple

import numpy as np
import pandas as pd


def found(name: str) -> pathlib.Path | None:
    """Folder ``name`` of the data: in $DFOREST_DATA, or in shared/data beside the repository."""
    beside = pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data"
    folder = pathlib.Path(os.environ.get("DFOREST_DATA", beside)) / name
    return folder if folder.is_dir() else None


class Items(NamedTuple):
    """Things with features, and how far apart people find them."""

    X: np.ndarray  # (n, p)
    Z: np.ndarray  # (n, n)


def ratings(name: str) -> Items:
    """Human ratings: "rectangles" (16 items, 2 features) or "morse" (36 items, 2 features)."""
    folder = found("perception")
    X = pd.read_csv(folder / f"{name}_X.csv").select_dtypes("number")
    Z = pd.read_csv(folder / f"{name}_Z.csv", index_col=0)
    return Items(X.to_numpy(float), Z.to_numpy(float))


def made_up_ratings(n: int, seed: int = 0) -> Items:
    """Items on two features; a rating is a Euclidean distance, stretched, and a little noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    noise = np.triu(rng.normal(scale=0.05, size=(n, n)), 1)
    Z = np.sqrt((((X[:, None] - X) * [2.0, 1.0]) ** 2).sum(axis=2)) + noise + noise.T
    return Items(X, Z)


class Network(NamedTuple):
    """Nodes with features, and which of them are linked."""

    X: np.ndarray  # (n, p)
    links: np.ndarray  # (n, n) bool, symmetric, no self links
    types: np.ndarray  # (n,) text


def mushroom_body() -> Network:
    """Right mushroom body of the larval fly, undirected: 213 neurons, link density .249.

    Features: type one-hot, claw, distance, age (mature 1, young 0); -1 where missing.
    """
    folder = found("mb")
    cells = pd.read_csv(folder / "vdf.csv")
    synapses = np.loadtxt(folder / "right_adjacency.csv")
    known = cells[["claw", "dist"]].assign(age=cells["age"].map({"mature": 1.0, "young": 0.0}))
    one_hot = pd.get_dummies(cells["type"], dtype=float)
    X = np.hstack([one_hot, known.fillna(-1.0)])
    return Network(X, (synapses + synapses.T) > 0, cells["type"].to_numpy(str))


def made_up_network(n: int, seed: int = 0) -> Network:
    """Three types whose members link by type, more so the nearer they are in one feature."""
    rng = np.random.default_rng(seed)
    types, place = rng.integers(0, 3, n), rng.random(n)
    odds = np.array([[0.05, 0.6, 0.2], [0.6, 0.1, 0.1], [0.2, 0.1, 0.4]])[types[:, None], types]
    odds = odds * (1.5 - abs(place[:, None] - place))
    upper = np.triu(rng.random((n, n)) < odds, 1)
    X = np.column_stack([types[:, None] == range(3), place, rng.random(n)]).astype(float)
    return Network(X, upper | upper.T, types.astype(str))


class Task(NamedTuple):
    """Rows to learn from, and rows to be judged on; z = |y - y'|."""

    X: np.ndarray  # (n, 16)
    y: np.ndarray  # (n,)
    X_test: np.ndarray  # (n_test, 16)
    y_test: np.ndarray  # (n_test,)

    @property
    def Z(self) -> np.ndarray:
        """(n, n) float32."""
        return distances(self.y)

    @property
    def Z_test(self) -> np.ndarray:
        """(n_test, n_test) float32."""
        return distances(self.y_test)


def distances(y) -> np.ndarray:
    """|y - y'| for every pair, (n, n) float32."""
    y = y.astype(np.float32)
    return abs(y[:, None] - y)


def synthetic(n: int, n_test: int = 200, seed: int = 0) -> Task:
    """X uniform on [0, 1]^16, y = sin(3 x1) + x2^2 scaled to [0, 1] by its range in all rows."""
    X = np.random.default_rng(seed).random((n + n_test, 16))
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2
    y = (y - y.min()) / np.ptp(y)
    return Task(X[:n], y[:n], X[n:], y[n:])
