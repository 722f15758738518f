"""The checks at the public doors: what a function was given is right, or an error says why not."""

from dforest.arrays.distances import Distances, as_distances
from dforest.arrays.features import Features, as_features
from dforest.arrays.graph import Graph
from dforest.arrays.pairs import Pairs
from dforest.arrays.parameters import check_choice, check_count, check_fraction_or_count
from dforest.arrays.responses import as_labels, as_response

__all__ = [
    "Distances",
    "Features",
    "Graph",
    "Pairs",
    "as_distances",
    "as_features",
    "as_labels",
    "as_response",
    "check_choice",
    "check_count",
    "check_fraction_or_count",
]
