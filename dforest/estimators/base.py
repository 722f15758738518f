"""What every estimator that holds a forest can do: say its leaves, be saved, be frozen."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from dforest.arrays import Features
from dforest.errors import NotFittedError
from dforest.estimators.inputs import open_features, read_features
from dforest.estimators.saving import save_model
from dforest.methods import answers
from dforest.methods.model import Forest, from_arrays, to_arrays
from dforest.run.client import place
from dforest.run.here import Here
from dforest.tree.layout import n_leaves


class ForestEstimator(BaseEstimator):
    """An estimator whose fit leaves a `Forest` in ``_forest``; it has a parameter ``n_jobs``."""

    _forest: Forest
    n_jobs: int | None

    # Leaves ------------------------------------------------------------------------------------

    def apply(self, X):
        """Leaf of each row in each tree: (n, T) int32, leaves numbered from left to right."""
        forest, runner = self._fitted(), place(n_jobs=self.n_jobs)
        return answers.apply(forest, self._features(X, stored=True).values, runner)

    def transform(self, X):
        """Leaves one-hot: sparse (n, leaves of all trees), one 1 for each tree."""
        return answers.one_hot(self._fitted(), self.apply(X))

    @property
    def n_leaves_(self):
        """Leaves of each tree, (T,)."""
        return np.array([n_leaves(tree) for tree in self._fitted().trees])

    @property
    def feature_importances_(self):
        """Share of all gains of equation (1) made by each feature's splits: (p,), sums to 1."""
        return answers.importances(self._fitted())

    # Keeping -----------------------------------------------------------------------------------

    def save(self, path):
        """Save the fitted model as one store, whole or absent; `dforest.load` reads it."""
        save_model(self, path)

    def frozen(self):
        """Wrap the fitted model so that `clone` and ``fit`` leave it as it is, in searches too."""
        self._fitted()
        return FrozenEstimator(self)

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts that `save` stores."""
        arrays, facts = to_arrays(self._fitted())
        if hasattr(self, "feature_names_in_"):
            arrays["feature_names"] = np.asarray(self.feature_names_in_, str)
        return arrays, facts

    def from_arrays(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]):
        """Take over what was stored; return self."""
        self._forest = from_arrays(arrays, facts)
        self.n_features_in_ = self._forest.n_features
        if "feature_names" in arrays:
            self.feature_names_in_ = np.asarray(arrays["feature_names"], object)
        return self

    # Inside ------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_forest")

    def _fitted(self) -> Forest:
        if not hasattr(self, "_forest"):
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit, or dforest.load"
            )
        return self._forest

    def _features(self, X, finite: bool = False, stored: bool = False) -> Features:
        """Features of ``X``, checked; ``stored`` says that those of a dataset may stay there."""
        self._fitted()
        read = open_features if stored else read_features
        return read(
            X,
            feature_names=getattr(self, "feature_names_in_", None),
            n_features=self.n_features_in_,
            finite=finite,
            model=type(self).__name__,
        )

    def _here(self) -> Here:
        runner = place(n_jobs=self.n_jobs)
        return runner if isinstance(runner, Here) else Here(self.n_jobs)

    def _forget_names(self) -> None:
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
