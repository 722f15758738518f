"""Notions of distance: for each, how it is checked, held, grown on, and tabulated.

A notion of n rows is ``Given``: a name, arrays that may be memory maps of a scratch folder, and
small facts. So the same functions serve this process and workers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dforest.arrays import Graph, Pairs, as_distances, as_labels, as_response
from dforest.errors import DataError, SpecError
from dforest.tree import leaves
from dforest.tree.criteria import Absolute, HalfSquared, Indicator, listed, precomputed
from dforest.tree.layout import Tree

SMALLEST = 1e-100  # of the largest number of a response or a list of distances


@dataclass(frozen=True)
class Given:
    """Checked distances between n rows, of one notion."""

    notion: str
    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.facts["n_rows"])

    @property
    def is_stored(self) -> bool:
        """Whether they are those of ``rows`` of a matrix store, read when they are wanted."""
        return "store" in self.facts


class Voters(NamedTuple):
    """The rows that one tree tabulates: which, in which leaf, and how often each counts."""

    rows: np.ndarray  # (k,) int64
    leaf: np.ndarray  # (k,) int32
    weights: np.ndarray  # (k,) float64


@dataclass(frozen=True)
class Notion:
    """What the engine and the leaf tables need to know of a notion of distance."""

    check: Callable[..., Given]
    criterion: Callable[..., Any]
    table: Callable[..., tuple[Any, int]]
    take: Callable[[Given, np.ndarray], Given]


def check_given(notion: str, Z: Any, n: int, labels=None) -> Given:
    """Check distances ``Z`` between n rows; `Pairs` and `Graph` name their notion themselves.

    Raises
    ------
    DataError
        ``Z`` does not fit n rows, or not the notion.
    SpecError
        There is no such notion.
    """
    if isinstance(Z, Given):  # checked before, and perhaps cut into folds
        return Z
    if notion not in NOTIONS:
        raise SpecError(f"distance: no {notion!r}; there are {', '.join(sorted(NOTIONS))}")
    own = {Pairs: "pairs", Graph: "graph"}.get(type(Z))
    if own and notion == "precomputed":
        notion = own
    wanted = {"pairs": "Pairs", "graph": "Graph"}.get(notion)
    if (own or wanted) and own != notion:
        raise DataError(
            f'distance="{notion}" needs {wanted or "an array"}, got {type(Z).__name__}; '
            f"give dforest.{wanted}(...)"
            if wanted
            else f'distance="{notion}" does not take {type(Z).__name__}; use distance="{own}"'
        )
    return NOTIONS[notion].check(Z, n, labels)


def _check_size(what: str, largest: float) -> None:
    """Refuse numbers whose squares and sums leave the range of float64."""
    if largest and not SMALLEST < largest < 1.0 / SMALLEST:
        raise DataError(
            f"{what} reaches {largest:.3g}, and sums over pairs need {SMALLEST:g} to "
            f"{1 / SMALLEST:g}; give it in another unit"
        )


# Precomputed: a matrix -------------------------------------------------------------------------


def _check_matrix(Z, n, labels) -> Given:
    checked = as_distances(Z, n, labels=labels)
    facts = {"n_rows": n, "largest": checked.largest, "has_unknown": checked.has_unknown}
    return Given("precomputed", {"z": checked.z}, facts)


def _matrix_criterion(given: Given, room: np.ndarray):
    facts = given.facts
    return precomputed(given.arrays["z"], facts["largest"], facts["has_unknown"], room)


def _matrix_table(given: Given, tree: Tree, voters: Voters, options):
    cell = leaves.cells_within(tree, options.max_cells)
    scale = leaves.matrix_scale(given.facts["largest"], voters.weights.sum())
    sums = leaves.square_sums(
        cell[voters.leaf], int(cell[-1]) + 1, given.arrays["z"], voters.rows, voters.weights,
        scale, options.self_pairs, given.facts["has_unknown"],
    )  # fmt: skip
    return leaves.matrix_table(leaves.shape_of(tree), cell, sums, scale)


def _take_matrix(given: Given, rows) -> Given:
    if given.is_stored:
        own = given.arrays["rows"][rows]
        return replace(given, arrays={"rows": own}, facts=given.facts | {"n_rows": len(own)})
    z = np.ascontiguousarray(given.arrays["z"][np.ix_(rows, rows)])
    return replace(given, arrays={"z": z}, facts=given.facts | {"n_rows": len(rows)})


# Listed: pairs and graphs ----------------------------------------------------------------------


def _listed_given(notion, i, j, z, n, far) -> Given:
    facts = {"n_rows": n, "far": far}
    facts["largest"] = float(np.abs(z if np.isnan(far) else z - far).max(initial=0.0))
    arrays = {"first": i.astype(np.int32), "second": j.astype(np.int32), "z": z}
    return Given(notion, arrays, facts)


def _check_pairs(Z, n, labels) -> Given:
    pairs = Z.for_rows(n)
    _check_size("|z|", np.abs(pairs.z).max())
    return _listed_given("pairs", pairs.i, pairs.j, pairs.z, n, np.nan)


def _check_graph(Z, n, labels) -> Given:
    graph = Z.for_rows(n)
    links = graph.weights.tocoo()
    upper = links.row < links.col
    z = graph.far - links.data[upper]
    _check_size("|z|", max(abs(graph.far), np.abs(z).max(initial=0.0)))
    return _listed_given("graph", links.row[upper], links.col[upper], z, n, float(graph.far))


def _listed_criterion(given: Given, room):
    ends = given.arrays["first"], given.arrays["second"]
    return listed(*ends, given.arrays["z"], given.n_rows, given.facts["far"])


def _listed_table(given: Given, tree: Tree, voters: Voters, options):
    leaf, weights = np.zeros(given.n_rows, np.int32), np.zeros(given.n_rows)
    leaf[voters.rows], weights[voters.rows] = voters.leaf, voters.weights
    scale = leaves.grid_scale(given.facts["largest"], max(voters.weights.sum(), 1.0) ** 2)
    table = leaves.link_table(
        leaves.shape_of(tree), leaf, weights, given.arrays["first"], given.arrays["second"],
        given.arrays["z"], given.facts["far"], scale, options.self_pairs,
    )  # fmt: skip
    if given.notion == "graph":
        return table, _n_silent(table)
    n = len(table.node)
    one = np.repeat(np.arange(n), np.diff(table.indptr))
    return table, n * (n + 1) // 2 - np.count_nonzero(one <= table.other)


def _take_listed(given: Given, rows) -> Given:
    place = np.full(given.n_rows, -1)
    place[rows] = np.arange(len(rows))
    first, second = place[given.arrays["first"]], place[given.arrays["second"]]
    kept = (first >= 0) & (second >= 0)
    z = given.arrays["z"][kept]
    return _listed_given(given.notion, first[kept], second[kept], z, len(rows), given.facts["far"])


def _n_silent(table) -> int:
    """Pairs of leaves between which no pair of rows votes, where every z is known."""
    weight, selves = table.weight[table.node], table.selves[table.node]
    n, voting = len(weight), int(np.count_nonzero(weight))
    within = weight * weight - (0.0 if table.self_pairs else selves)
    return (n * (n - 1) - voting * (voting - 1)) // 2 + int(np.count_nonzero(within <= 0.0))


# Responses: classes and numbers ----------------------------------------------------------------


def _check_classes(y, n, labels) -> Given:
    codes, classes = as_labels(y, n, labels=labels)
    facts = {"n_rows": n, "n_classes": len(classes)}
    return Given("indicator", {"y": codes.astype(np.int32)}, facts)


def _class_criterion(given: Given, room):
    return Indicator(given.arrays["y"], given.facts["n_classes"])


def _class_table(given: Given, tree: Tree, voters: Voters, options):
    y = given.arrays["y"][voters.rows]
    shape, facts = leaves.shape_of(tree), given.facts
    table = leaves.class_table(
        shape, voters.leaf, voters.weights, y, facts["n_classes"], options.self_pairs
    )
    return table, _n_silent(table)


def _check_numbers(y, n, labels) -> Given:
    response = as_response(y, n, labels=labels)
    _check_response(response)
    return Given("half_squared", {"y": response}, {"n_rows": n})


def _check_response(y: np.ndarray) -> None:
    _check_size("|y|", np.abs(y).max())
    _check_size("the range of y", np.ptp(y, axis=0).max())


def _number_criterion(given: Given, room):
    return HalfSquared(given.arrays["y"])


def _number_table(given: Given, tree: Tree, voters: Voters, options):
    y = given.arrays["y"]
    centre = np.array([float(np.mean(column)) for column in y.T])
    shape, rows = leaves.shape_of(tree), y[voters.rows]
    table = leaves.moment_table(
        shape, voters.leaf, voters.weights, rows, centre, options.self_pairs
    )
    return table, _n_silent(table)


def _check_one_number(y, n, labels) -> Given:
    response = as_response(y, n, labels=labels)
    if response.shape[1] != 1:
        raise DataError(
            f'distance="absolute" takes one response, got y of shape {response.shape}; '
            'use distance="half_squared" for several'
        )
    _check_response(response)
    return Given("absolute", {"y": response[:, 0].copy()}, {"n_rows": n})


def _one_number_criterion(given: Given, room):
    return Absolute(given.arrays["y"])


def _one_number_table(given: Given, tree: Tree, voters: Voters, options):
    y = given.arrays["y"][voters.rows]
    shape = leaves.shape_of(tree)
    table = leaves.value_table(shape, voters.leaf, voters.weights, y, options.self_pairs)
    return table, _n_silent(table)


def _take_response(given: Given, rows) -> Given:
    arrays = {"y": given.arrays["y"][rows]}
    return replace(given, arrays=arrays, facts=given.facts | {"n_rows": len(rows)})


NOTIONS = {
    "precomputed": Notion(_check_matrix, _matrix_criterion, _matrix_table, _take_matrix),
    "pairs": Notion(_check_pairs, _listed_criterion, _listed_table, _take_listed),
    "graph": Notion(_check_graph, _listed_criterion, _listed_table, _take_listed),
    "indicator": Notion(_check_classes, _class_criterion, _class_table, _take_response),
    "half_squared": Notion(_check_numbers, _number_criterion, _number_table, _take_response),
    "absolute": Notion(_check_one_number, _one_number_criterion, _one_number_table, _take_response),
}
