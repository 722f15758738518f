"""Leaf tables: what a tree knows at its leaves, as sums that add up across blocks.

A tree's shape and its tables are learned apart: honesty, refitting and streaming are choices of
the rows that are tabulated, and nothing else.
"""

from dforest.tree.leaves.links import LinkTable, link_table
from dforest.tree.leaves.matrix import (
    MatrixTable,
    cells_within,
    matrix_scale,
    matrix_table,
    square_sums,
)
from dforest.tree.leaves.responses import (
    ClassTable,
    MomentTable,
    ValueTable,
    class_table,
    moment_table,
    value_table,
)
from dforest.tree.leaves.verbs import between_leaves, grid, grid_scale, paired, shape_of

TABLES = {
    "classes": ClassTable,
    "links": LinkTable,
    "matrix": MatrixTable,
    "moments": MomentTable,
    "values": ValueTable,
}

__all__ = [
    "TABLES",
    "ClassTable",
    "LinkTable",
    "MatrixTable",
    "MomentTable",
    "ValueTable",
    "between_leaves",
    "cells_within",
    "class_table",
    "grid",
    "grid_scale",
    "link_table",
    "matrix_scale",
    "matrix_table",
    "moment_table",
    "paired",
    "shape_of",
    "square_sums",
    "value_table",
]
