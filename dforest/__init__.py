"""Learn distances with decision forests, out of core, on Dask."""

from dforest.arrays import Graph, Pairs
from dforest.estimators.classifiers import (
    ForestClassifier,
    KernelForestClassifier,
    UncertaintyForestClassifier,
)
from dforest.estimators.forests import DistanceForest
from dforest.estimators.kernels import KernelRegressor, kerf_centred, kerf_uniform
from dforest.estimators.pairwise import pairwise_distances
from dforest.estimators.regressors import ForestRegressor, KernelForestRegressor
from dforest.estimators.saving import load
from dforest.estimators.validation import cross_validate, permutation_importance
from dforest.store.matrix import MatrixStore

__version__ = "0.1.0"

__all__ = [
    "DistanceForest",
    "ForestClassifier",
    "ForestRegressor",
    "Graph",
    "KernelForestClassifier",
    "KernelForestRegressor",
    "KernelRegressor",
    "MatrixStore",
    "Pairs",
    "UncertaintyForestClassifier",
    "cross_validate",
    "kerf_centred",
    "kerf_uniform",
    "load",
    "pairwise_distances",
    "permutation_importance",
]
