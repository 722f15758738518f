"""The checks at the public doors: what a function was given is right, or an error says why not."""

from dforest.arrays.distances import Distances, as_distances
from dforest.arrays.features import Features, as_features

__all__ = ["Distances", "Features", "as_distances", "as_features"]
