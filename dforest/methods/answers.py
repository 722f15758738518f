"""What a forest answers: leaves, learned distances, out-of-bag rows, shares of its gains.

Work goes to a runner's tasks; they hold what `dforest.methods.asked` makes of a question.
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dforest.errors import SpecError
from dforest.methods.asked import (
    Answer,
    Asked,
    answer,
    answer_paired,
    cut,
    pair_blocks,
    sorted_rows,
)
from dforest.methods.material import Held, Mapped, route_all, within_reach
from dforest.methods.model import Forest
from dforest.run.cluster import Cluster
from dforest.run.here import Here
from dforest.run.memory import memory_bytes
from dforest.run.passes import Part, Pass
from dforest.store.dataset import Dataset
from dforest.tree.layout import Tree, joined, n_leaves, parted
from dforest.tree.pairs import place

ROUTED = 8_192  # rows of a block
PAIRED = 1 << 16  # rows of a block that are answered one by one
Source = Held[Asked] | Mapped[Asked]

# Leaves ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredRows:
    """Features that stay in their store until a block of them is routed."""

    dataset: Dataset

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return self.dataset.points.shape

    def __getitem__(self, rows: slice):
        return self.dataset.points.read(rows.start, rows.stop)


@dataclass(frozen=True)
class Grown:
    """Trees that rows are routed through."""

    trees: list[Tree]

    def flat(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts."""
        return joined(self.trees), {}

    @classmethod
    def from_flat(cls, arrays, facts) -> "Grown":
        """Put together again."""
        return cls(parted(arrays))


def apply(forest: Forest, X, runner: Here | Cluster) -> np.ndarray:
    """Leaf of each row in each tree, (n, T) int32, by blocks of rows.

    ``X`` is an ndarray, CSR, or `StoredRows`: those are read where they are routed. Rows in memory
    are routed in this process, which costs no more than to send them.
    """
    blocks = cut(X.shape[0], ROUTED)
    if isinstance(X, StoredRows):
        blocks = X.dataset.row_blocks()
    elif isinstance(runner, Cluster):
        runner = Here()
    leaves = np.empty((X.shape[0], len(forest.trees)), np.int32)
    with within_reach(Grown(forest.trees), runner) as source:
        job = Pass("apply", functools.partial(_route, source=source, X=X), _each(blocks))
        for rows, part in zip(blocks, runner.run(job), strict=True):
            leaves[rows] = part["leaves"]
    return leaves


def _route(rows: slice, *, source, X) -> Part:
    """Task: route some rows."""
    return {"leaves": route_all(source.open().trees, X[rows])}


def _each(blocks) -> list[list]:
    return [[block] for block in blocks]


# Distances -------------------------------------------------------------------------------------


def pairwise(asked: Asked, runner: Here | Cluster, *, with_std=False) -> Answer:
    """Learned distances of all rows of one side with all of the other, in memory: (a, b).

    Of the same rows on both sides, each pair is asked once. NaN where no tree may answer.

    Raises
    ------
    SpecError
        The answer does not fit into half of the memory that this process may use.
    """
    refuse_large(*asked.shape, copies=1 + with_std)
    asked, order, across = _in_order(asked)
    found = [np.empty(asked.shape) for _ in range(1 + with_std)]
    same = asked.others is None
    blocks = pair_blocks(asked.shape, same, runner)
    with within_reach(asked, runner) as source:
        step = functools.partial(_answer, source=source, with_std=with_std)
        parts = runner.run(Pass("pairwise", step, _each(blocks)))
        for (rows, columns), part in zip(blocks, parts, strict=True):
            for out, values in zip(found, part.values(), strict=True):
                place(out, order[rows], across[columns], values)
                if same and rows != columns:
                    place(out, across[columns], order[rows], values.T)
    return Answer(found[0], found[1] if with_std else None)


def _in_order(asked: Asked) -> tuple[Asked, np.ndarray, np.ndarray]:
    """The question with rows that share leaves near each other, and where its rows were."""
    order = across = sorted_rows(asked.ones)
    changed = {"ones": asked.ones[order]}
    if asked.others is not None:
        across = sorted_rows(asked.others)
        changed["others"] = asked.others[across]
    if asked.outside is not None:
        changed["outside"] = asked.outside[order]
    return dataclasses.replace(asked, **changed), order, across


def _answer(block, *, source: Source, with_std: bool) -> Part:
    """Task: answer a block of pairs."""
    mean, std = answer(source.open(), *block, with_std=with_std)
    return {"mean": mean} if std is None else {"mean": mean, "std": std}


def paired(asked: Asked, runner: Here | Cluster) -> np.ndarray:
    """Learned distance of each row of one side with the one at its place on the other: (n,)."""
    blocks = cut(asked.shape[0], PAIRED)
    with within_reach(asked, runner) as source:
        job = Pass("paired", functools.partial(_answer_paired, source=source), _each(blocks))
        return np.concatenate([part["mean"] for part in runner.run(job)])


def _answer_paired(rows: slice, *, source: Source) -> Part:
    """Task: answer some rows."""
    return {"mean": answer_paired(source.open(), rows)}


def refuse_large(a: int, b: int, copies: int = 1) -> None:
    """Refuse (a, b) answers that would not fit into half of the memory of this process.

    Raises
    ------
    SpecError
        With the size, and the way out.
    """
    needed, limit = 8 * a * b * copies, memory_bytes() // 2
    if needed > limit:
        raise SpecError(
            f"all {a:,} x {b:,} distances take {needed / 2**30:,.2f} GiB, the limit is "
            f"{limit / 2**30:,.2f} (half the memory); give out=PATH, or ask for kneighbors"
        )


# Of the forest itself --------------------------------------------------------------------------


def one_hot(forest: Forest, leaves: np.ndarray) -> sparse.csr_array:
    """Leaves (n, T) as a sparse (n, leaves of all trees), one 1 for each tree."""
    begin = np.append(0, np.cumsum([n_leaves(tree) for tree in forest.trees]))
    return rows_of_few(leaves + begin[:-1], np.ones(leaves.shape), begin[-1])


def rows_of_few(columns: np.ndarray, values: np.ndarray, n_columns: int) -> sparse.csr_array:
    """A sparse matrix with as many entries in every row: columns and values (n, k).

    >>> rows_of_few(np.array([[2], [0]]), np.array([[5.0], [6.0]]), 3).toarray()
    array([[0., 0., 5.],
           [6., 0., 0.]])
    """
    indptr = np.arange(0, columns.size + 1, columns.shape[1])
    return sparse.csr_array(
        (values.ravel(), columns.ravel(), indptr), shape=(len(columns), n_columns)
    )


def out_of_bag(forest: Forest, rows: np.ndarray) -> np.ndarray:
    """Whether each row was out of each tree's bag: (k, T) bool."""
    outside = np.ones((forest.n_rows, len(forest.trees)), bool)
    for t in range(len(forest.trees)):
        outside[forest.bag(t)[0], t] = False
    return outside[rows]


def importances(forest: Forest) -> np.ndarray:
    """Share of all gains of equation (1) that each feature's splits made: (p,), sums to 1.

    The gain of an oblique split is shared among its features. All zeros if no tree has split.
    """
    gains = np.zeros(forest.n_features)
    for tree in forest.trees:
        axis = tree.feature >= 0
        np.add.at(gains, tree.feature[axis], tree.gain[axis])
        for node in np.flatnonzero(tree.feature < -1):
            k = -2 - tree.feature[node]
            terms = tree.columns[tree.starts[k] : tree.starts[k + 1]]
            gains[terms] += tree.gain[node] / len(terms)
    return gains / gains.sum() if gains.sum() > 0 else gains
