"""What tasks work on: features, distances, trees; in memory or in a scratch folder.

A task holds a source, never an array: ``Held`` in this process, ``Mapped`` (a path) on workers.
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from scipy import sparse

from dforest.methods.model import under
from dforest.methods.notions import Given
from dforest.run.client import preflight
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.store import scratch
from dforest.store.scratch import Scratch
from dforest.tree.binning import Table
from dforest.tree.layout import Tree, joined, parted
from dforest.tree.route import route

ROW_BYTES = 1 << 22  # sparse rows made dense at once
MAPS = 1  # things that a process keeps mapped: they count as its memory, and keep their disk


class Flat(Protocol):
    """Anything that arrays and small facts say whole, so that it can lie in a folder."""

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays, and facts as JSON can hold them."""

    @classmethod
    def from_flat(cls, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Self:
        """Put together what `flat` took apart; the arrays may be read-only maps."""


T = TypeVar("T", bound=Flat)


@dataclass(frozen=True)
class Material:
    """Features and distances of n rows; ``table`` only for growing, ``trees`` for tabulating."""

    X: Any  # (n, p) float32 or float64 ndarray, or CSR
    given: Given
    table: Table | None = None
    trees: list[Tree] = dataclasses.field(default_factory=list)

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        rooms = {
            "X": flat_features(self.X),
            "given": self.given.arrays,
            "table": self.table._asdict() if self.table else {},
            "trees": joined(self.trees) if self.trees else {},
        }
        arrays = {
            f"{room}.{name}": array
            for room, inside in rooms.items()
            for name, array in inside.items()
        }
        return arrays, {"notion": self.given.notion, "given": self.given.facts}

    @classmethod
    def from_flat(cls, arrays, facts) -> "Material":
        """Put together again."""
        given = Given(facts["notion"], under("given.", arrays), facts["given"])
        table, trees = under("table.", arrays), under("trees.", arrays)
        return cls(
            features_of(under("X.", arrays)),
            given,
            Table(**table) if table else None,
            parted(trees) if trees else [],
        )


def flat_features(X) -> dict[str, np.ndarray]:
    """Arrays that say a table of features whole, dense or sparse."""
    if not sparse.issparse(X):
        return {"dense": X}
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    return parts | {"shape": np.array(X.shape)}


def features_of(arrays: dict[str, np.ndarray]):
    """Put together what `flat_features` took apart."""
    if "dense" in arrays:
        return arrays["dense"]
    parts = tuple(arrays[name] for name in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(arrays["shape"]))


# Within reach ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held(Generic[T]):
    """A thing in this process."""

    thing: T

    def open(self) -> T:
        """Return the thing."""
        return self.thing


@dataclass(frozen=True)
class Mapped(Generic[T]):
    """A thing in a scratch folder that every worker can see."""

    kind: type[T]
    folder: str
    facts: str  # JSON

    def open(self) -> T:
        """Map the thing; a process maps it once."""
        return _mapped(self.kind, self.folder, self.facts)


@functools.lru_cache(maxsize=MAPS)
def _mapped(kind, folder: str, facts: str):
    return kind.from_flat(Scratch.open(folder), json.loads(facts))


@contextlib.contextmanager
def within_reach(thing: T, runner: Here | Cluster) -> Iterator[Held[T] | Mapped[T]]:
    """Make a thing reachable to a runner's tasks: as it is, or in a scratch folder."""
    if isinstance(runner, Here):
        yield Held(thing)
        return
    with scratch_folder(runner) as folder:
        arrays, facts = thing.flat()
        Scratch.save(folder / "thing", arrays)
        yield Mapped(type(thing), str(folder / "thing"), json.dumps(facts))


@contextlib.contextmanager
def scratch_folder(runner: Here | Cluster) -> Iterator[pathlib.Path]:
    """Make a folder under the `scratch_home` that every worker sees; it is removed at the end."""
    with scratch.scratch_folder() as folder:
        if isinstance(runner, Cluster):
            preflight(runner.client, folder)
        yield folder


def digest_of(thing: Flat, *said) -> str:
    """Fingerprint of a thing and of whatever else decides what is done with it."""
    arrays, facts = thing.flat()
    digest = hashlib.sha256(repr([*said, facts]).encode())
    for name, array in arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# Features --------------------------------------------------------------------------------------


def dense_blocks(X) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of dense rows: all at once where they are dense already."""
    if not sparse.issparse(X):
        yield slice(0, X.shape[0]), X
        return
    step = max(1, ROW_BYTES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, X[rows].toarray()


def route_all(trees: list[Tree], X) -> np.ndarray:
    """Leaf of each row in each tree: (n, T) int32."""
    leaves = np.empty((X.shape[0], len(trees)), np.int32)
    for rows, block in dense_blocks(X):
        for t, tree in enumerate(trees):
            leaves[rows, t] = route(tree, block)
    return leaves
