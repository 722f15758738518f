"""Leaf tables: what a tree knows at its leaves, as sums that add up across blocks.

A tree's shape and its tables are learned apart: honesty, refitting and streaming are choices of
the rows that are tabulated, and nothing else.
"""

from dforest.tree.leaves.links import LinkTable, link_table
from dforest.tree.leaves.matrix import MatrixTable, cells_within, matrix_table
from dforest.tree.leaves.responses import (
    ClassTable,
    MomentTable,
    ValueTable,
    class_table,
    moment_table,
    value_table,
)
from dforest.tree.leaves.sums import (
    SIDE,
    MatrixSums,
    SquareSums,
    Votes,
    add_block,
    all_pairs,
    blocks_of,
    matrix_scale,
    no_sums,
    square_sums,
    votes_of,
)
from dforest.tree.leaves.verbs import between_leaves, grid, grid_scale, paired, shape_of
from dforest.tree.leaves.votes import (
    Own,
    VoteTable,
    median_places,
    seats,
    value_at,
    vote_table,
)

TABLES = {
    "classes": ClassTable,
    "links": LinkTable,
    "matrix": MatrixTable,
    "moments": MomentTable,
    "values": ValueTable,
    "votes": VoteTable,
}

__all__ = [
    "SIDE",
    "TABLES",
    "ClassTable",
    "LinkTable",
    "MatrixSums",
    "MatrixTable",
    "MomentTable",
    "Own",
    "SquareSums",
    "ValueTable",
    "VoteTable",
    "Votes",
    "add_block",
    "all_pairs",
    "between_leaves",
    "blocks_of",
    "cells_within",
    "class_table",
    "grid",
    "grid_scale",
    "link_table",
    "matrix_scale",
    "matrix_table",
    "median_places",
    "moment_table",
    "no_sums",
    "paired",
    "seats",
    "shape_of",
    "square_sums",
    "value_at",
    "value_table",
    "vote_table",
    "votes_of",
]
