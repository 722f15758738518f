"""Notions of distance that a tree can be grown to explain; one file a kind, six verbs for all."""

from dforest.tree.criteria.listed import Listed, listed
from dforest.tree.criteria.matrix import Precomputed, precomputed
from dforest.tree.criteria.responses import Absolute, HalfSquared, Indicator
from dforest.tree.criteria.verbs import Node, accuracy, pair_sums, part, settled, start, take

__all__ = [
    "Absolute",
    "HalfSquared",
    "Indicator",
    "Listed",
    "Node",
    "Precomputed",
    "accuracy",
    "listed",
    "pair_sums",
    "part",
    "precomputed",
    "settled",
    "start",
    "take",
]
