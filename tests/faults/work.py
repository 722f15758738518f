"""Work of every kind that is done in passes: what it is given, and the bits that come of it."""

import functools
import pathlib
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

import numpy as np
from small_forests import bits, example, forest_of, points

import dforest as df
from dforest.estimators import inputs
from dforest.methods import costs, stored
from dforest.methods.forest import keeping
from dforest.store import schema
from dforest.store.matrix import MatrixStore, MatrixWriter
from dforest.store.receipts import Receipts

N = 24
TILE = 6


class Work(NamedTuple):
    """One kind of work; ``do(folder, client)`` may be called again after it failed."""

    passes: tuple[str, ...]
    do: Callable


@functools.cache
def data():
    """Features (n, p) and distances (n, n)."""
    X = points(N)
    return X, example("precomputed", X)[0]


@functools.cache
def fitted() -> df.DistanceForest:
    """A forest for those that only ask."""
    return forest_of().fit(*data())


def stored_matrix(folder) -> MatrixStore:
    """The distances in a store, written once."""
    path = pathlib.Path(folder) / "z"
    if not path.exists():
        z = np.float32(data()[1])
        with MatrixWriter(path, N, TILE) as writer:
            for a, b in writer.tiles():
                writer.write_tile(a, b, z[writer.span(a, b)])
            writer.publish()
    return MatrixStore(path)


def _streaming(do):
    """Stream even a small matrix, in several groups of trees and of blocks."""

    @functools.wraps(do)
    def work(folder, client=None):
        with (
            mock.patch.object(inputs, "fits", return_value=False),
            mock.patch.object(costs, "MOST_TREES", 2),
            mock.patch.object(costs, "PARTS", 4),
            mock.patch.object(stored, "block_side", return_value=2 * TILE),
        ):
            return do(folder, client)

    return work


def fit(folder, client=None):
    with keeping(Receipts(pathlib.Path(folder) / "kept", "work")):
        return bits(forest_of().fit(*data(), client=client))


@_streaming
def fit_stored(folder, client):
    with keeping(Receipts(pathlib.Path(folder) / "kept", "work")):
        forest = forest_of(pool_size=12, leaf_rows="all")
        return bits(forest.fit(data()[0], stored_matrix(folder), client=client))


@_streaming
def refit(folder, client):
    forest = forest_of("half_squared").fit(data()[0], data()[0])
    return bits(forest.refit_leaves(data()[0], stored_matrix(folder), client=client))


def write_distances(folder, client=None):
    out = pathlib.Path(folder) / "out"
    df.pairwise_distances(data()[0], out=out, tile=TILE, symmetric="full", client=client)
    return schema.fingerprint(out)


def write_learned(folder, client=None):
    out = pathlib.Path(folder) / "out"
    forest = fitted()
    df.pairwise_distances(data()[0], distance=forest, out=out, tile=TILE, client=client)
    return schema.fingerprint(out)


def write_out_of_bag(folder, client=None):
    out = pathlib.Path(folder) / "out"
    fitted().oob_pairwise(out=out, client=client)
    return schema.fingerprint(out)


def ask(folder, client=None):
    """In memory: always on threads of this process."""
    forest, X = fitted(), data()[0]
    found = [forest.pairwise(X), *forest.kneighbors(X, 3), df.pairwise_distances(X, tile=TILE)]
    return [array.tobytes() for array in found]


WORK = {
    "fit": Work(("grow-trees", "tabulate-leaves"), fit),
    "fit stored": Work(("pool", "grow-trees", "route-rows", "tabulate-leaves"), fit_stored),
    "refit stored": Work(("route-rows", "refit-leaves"), refit),
    "write distances": Work(("distances",), write_distances),
    "write learned": Work(("write-pairs",), write_learned),
    "write out of bag": Work(("write-pairs",), write_out_of_bag),
    "ask": Work(("apply", "pairwise", "nearest", "distances"), ask),
}
