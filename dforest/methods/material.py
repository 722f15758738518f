"""What trees are grown from: features and distances, in memory or in a scratch folder.

A task holds a source, never an array: ``Held`` in this process, ``Mapped`` (a path) on workers.
"""

import contextlib
import dataclasses
import functools
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dforest.methods.model import under
from dforest.methods.notions import Given
from dforest.run.client import preflight
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.store.scratch import Scratch, scratch_home
from dforest.tree.binning import Table
from dforest.tree.layout import Tree, joined, parted

ROW_BYTES = 1 << 22  # sparse rows made dense at once


@dataclass(frozen=True)
class Material:
    """Features and distances of n rows; ``table`` only for growing, ``trees`` for tabulating."""

    X: Any  # (n, p) float32 or float64 ndarray, or CSR
    given: Given
    table: Table | None = None
    trees: list[Tree] = dataclasses.field(default_factory=list)


@dataclass(frozen=True)
class Held:
    """Material in this process."""

    material: Material

    def open(self) -> Material:
        """Return the material."""
        return self.material


@dataclass(frozen=True)
class Mapped:
    """Material in a scratch folder that every worker can see."""

    folder: str
    facts: tuple  # of the distances, as (name, value) pairs

    def open(self) -> Material:
        """Map the material; a process maps it once."""
        return _mapped(self.folder, self.facts)


@functools.lru_cache(maxsize=1)  # a removed folder that is still mapped keeps its disk
def _mapped(folder: str, facts: tuple) -> Material:
    arrays, said = Scratch.open(folder), dict(facts)
    X = arrays.get("X")
    if X is None:
        parts = tuple(arrays[f"X.{name}"] for name in ("data", "indices", "indptr"))
        X = sparse.csr_array(parts, shape=tuple(arrays["X.shape"]))
    given = Given(said.pop("notion"), under("given.", arrays), said)
    table, trees = under("table.", arrays), under("trees.", arrays)
    return Material(X, given, Table(**table) if table else None, parted(trees) if trees else [])


@contextlib.contextmanager
def within_reach(material: Material, runner: Here | Cluster) -> Iterator[Held | Mapped]:
    """Make the material reachable to a runner's tasks: as it is, or in a scratch folder.

    The folder is made under the `scratch_home` and removed at the end; every worker must see it.
    """
    if isinstance(runner, Here):
        yield Held(material)
        return
    home = scratch_home()
    pathlib.Path(home).mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="dforest-", dir=home)
    try:
        preflight(runner.client, folder)
        Scratch.save(pathlib.Path(folder) / "material", _flat(material))
        facts = (("notion", material.given.notion), *material.given.facts.items())
        yield Mapped(str(pathlib.Path(folder) / "material"), facts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _flat(material: Material) -> dict[str, np.ndarray]:
    X = material.X
    if sparse.issparse(X):
        arrays = {"X.data": X.data, "X.indices": X.indices, "X.indptr": X.indptr}
        arrays["X.shape"] = np.array(X.shape)
    else:
        arrays = {"X": X}
    rooms = {
        "given": material.given.arrays,
        "table": material.table._asdict() if material.table else {},
        "trees": joined(material.trees) if material.trees else {},
    }
    for room, inside in rooms.items():
        arrays |= {f"{room}.{name}": array for name, array in inside.items()}
    return arrays


def dense_blocks(X) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of dense rows: all at once where they are dense already."""
    if not sparse.issparse(X):
        yield slice(0, X.shape[0]), X
        return
    step = max(1, ROW_BYTES // (8 * X.shape[1]))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, X[rows].toarray()
