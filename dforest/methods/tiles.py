"""Learned distances of more rows than memory holds: tiles of a matrix store, one task each."""

import functools

import numpy as np

from dforest.methods import answers
from dforest.methods.model import Forest
from dforest.run.here import Here
from dforest.run.passes import Pass
from dforest.store.matrix import MatrixStore, MatrixWriter
from dforest.store.tiles import Symmetry


def stream_pairwise(forest: Forest, ones, others, path, runner: Here, votes=None) -> MatrixStore:
    """Write the learned distances of leaves ``ones`` (a, T) with ``others`` (b, T) to a store.

    ``others=None`` means ``ones``: a symmetric matrix, of which the upper tiles are stored. votes
    is ((a, T) bool, "both" or "either"): which trees may answer for which row.
    """
    symmetric: Symmetry = "upper" if others is None else "none"
    sides = (ones, ones if others is None else others)
    with MatrixWriter(path, (len(ones), len(sides[1])), symmetric=symmetric) as writer:
        step = functools.partial(_write, forest=forest, sides=sides, votes=votes, writer=writer)
        job = Pass("write-pairs", step, [[tile] for tile in writer.tiles()])
        for _ in runner.run(job):
            pass
        writer.publish()
    return MatrixStore(path)


def _write(tile, *, forest, sides, votes, writer):
    """Task: compute one tile, and write it whole."""
    rows, columns = writer.span(*tile)
    if votes is not None:
        votes = (votes[0][rows], votes[0][columns], votes[1])
    found = answers.pairwise(forest, sides[0][rows], sides[1][columns], Here(1), votes=votes)
    receipt = writer.write_tile(*tile, found.mean.astype(np.float32))
    return {"largest": np.array([receipt["largest"]])}
