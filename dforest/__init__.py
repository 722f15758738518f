"""Learn distances with decision forests, out of core, on Dask."""

from dforest.arrays import Graph, Pairs
from dforest.estimators.forests import DistanceForest
from dforest.estimators.pairwise import pairwise_distances
from dforest.estimators.saving import load
from dforest.estimators.validation import cross_validate, permutation_importance
from dforest.store.matrix import MatrixStore

__version__ = "0.1.0"

__all__ = [
    "DistanceForest",
    "Graph",
    "MatrixStore",
    "Pairs",
    "cross_validate",
    "load",
    "pairwise_distances",
    "permutation_importance",
]
