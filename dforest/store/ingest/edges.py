"""Graphs from edge lists: two or three columns, ends and weight."""

import itertools

import numpy as np
from scipy import sparse

from dforest.errors import DataError
from dforest.store.ingest.text import TextRows, as_numbers, is_number

HEADERS = {"source", "target", "from", "to", "src", "dst", "head", "tail", "i", "j", "u", "v",
           "node1", "node2", "left", "right", "weight", "w"}  # fmt: skip


def is_edge_list(path) -> bool:
    """Whether a text file has two or three columns."""
    with TextRows(path) as rows:
        widths = [len(row) for row in itertools.islice(rows, 4)]
    return set(widths) in ({2}, {3})


def read_edges(path) -> tuple[np.ndarray, np.ndarray]:
    """Read a text edge list: ends (m, 2) strings, weights (m,) float64, 1 where not given."""
    with TextRows(path) as rows:
        lines = list(rows)
    width = len(lines[0])
    if width not in (2, 3):
        raise DataError(f"{path}: an edge list has 2 or 3 columns (ends, weight), got {width}")
    wrong = next((at for at, line in enumerate(lines) if len(line) != width), None)
    if wrong is not None:
        raise DataError(f"{path}: line {wrong + 1} has {len(lines[wrong])} cells, not {width}")
    if _is_header(lines):
        lines = lines[1:]
    ends = np.array([[cell.strip() for cell in line[:2]] for line in lines]).reshape(-1, 2)
    if width == 2:
        return ends, np.ones(len(ends))
    return ends, as_numbers([line[2] for line in lines], f"{path}: weight", what="edge")


def _is_header(lines: list[list[str]]) -> bool:
    first = lines[0]
    if len(first) == 3 and not is_number(first[2]):
        return True
    ends = {end for line in lines[1:] for end in line[:2]}
    if all(cell.strip().lower() in HEADERS for cell in first):
        return ends.isdisjoint(first)
    return bool(ends) and all(map(is_number, ends)) and not any(map(is_number, first[:2]))


def number_ends(ends: np.ndarray, ids=None) -> tuple[np.ndarray, np.ndarray]:
    """Turn names of ends into row numbers: (m, 2) int64, and the rows' names (n,).

    The rows are those of ``ids``, in their order; else the names found, numbers in numerical order
    and other names in alphabetical order.
    """
    found, places = np.unique(ends, return_inverse=True)
    places = places.reshape(ends.shape)
    if ids is None:
        order = np.arange(len(found))
        if all(name.isdigit() for name in found.tolist()):
            order = np.argsort([int(name) for name in found.tolist()], kind="stable")
        rank = np.empty(len(found), np.int64)
        rank[order] = np.arange(len(found))
        return rank[places], found[order]
    rows = {name: row for row, name in enumerate(np.asarray(ids).tolist())}
    unknown = [name for name in found.tolist() if name not in rows]
    if unknown:
        raise DataError(
            f"an edge ends in {unknown[0]!r}, which is no row's id ({len(unknown)} such)"
        )
    table = np.array([rows[name] for name in found.tolist()], np.int64)
    return table[places], np.asarray(ids)


def as_row_numbers(ends: np.ndarray, n_rows: int | None) -> tuple[np.ndarray, int]:
    """Ends that are row numbers already, checked: (m, 2) int64, and the number of rows."""
    try:
        numbers = ends.astype(np.int64)
        whole = np.array_equal(numbers.astype(float), ends.astype(float))
    except (ValueError, OverflowError):
        whole = False
    if not whole:
        raise DataError("edges must end in row numbers when n_rows is given")
    n = int(numbers.max(initial=-1)) + 1 if n_rows is None else n_rows
    bad = (numbers < 0) | (numbers >= n)
    if bad.any():
        at = np.argwhere(bad)[0]
        raise DataError(
            f"edge {at[0]} ends in row {numbers[tuple(at)]}, but there are rows 0..{n - 1}"
        )
    return numbers, n


def as_weights(ends: np.ndarray, weights: np.ndarray, n: int) -> tuple[sparse.csr_array, int]:
    """Symmetric weights (n, n) from edges, each given once or in both directions.

    Returns
    -------
    weights : csr_array
    n_loops : int
        Edges from a row to itself, which were dropped.

    Raises
    ------
    DataError
        If an edge is given twice with different weights.
    """
    loops = ends[:, 0] == ends[:, 1]
    ends, weights = np.sort(ends[~loops], axis=1), weights[~loops]
    if not np.isfinite(weights).all():
        raise DataError(f"edge {np.flatnonzero(~np.isfinite(weights))[0]} has no finite weight")
    order = np.lexsort((weights, ends[:, 1], ends[:, 0]))
    ends, weights = ends[order], weights[order]
    again = (ends[1:] == ends[:-1]).all(axis=1)
    clash = np.flatnonzero(again & (weights[1:] != weights[:-1]))
    if clash.size:
        at = clash[0]
        raise DataError(
            f"edge {ends[at].tolist()} weighs {weights[at]:g} and {weights[at + 1]:g}; a graph"
            " is undirected, so give each edge one weight"
        )
    first = np.concatenate([[True], ~again]) if len(ends) else np.zeros(0, bool)
    (i, j), w = ends[first].T, weights[first]
    both = (np.concatenate([w, w]), (np.concatenate([i, j]), np.concatenate([j, i])))
    return sparse.csr_array(both, shape=(n, n)), int(loops.sum())
