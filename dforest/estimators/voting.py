"""What classifiers and regressors share: fitting on responses, and who votes for whom."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin

from dforest.arrays import Features
from dforest.estimators.base import ForestEstimator
from dforest.estimators.recipes import check_continues, recipe_of
from dforest.estimators.saving import model
from dforest.methods import sharing, votes
from dforest.methods.fitting import fit
from dforest.methods.model import under
from dforest.methods.notions import Given, check_given
from dforest.run.client import place


class VotingForest(TransformerMixin, ForestEstimator):
    """A forest whose leaves predict; its subclasses say what."""

    pool_size = None  # chosen for `DistanceForest`, and not needed where y tells all distances
    max_split_rows = None
    self_pairs = True
    table_budget = 1 << 30

    distance: str
    warm_start: bool
    random_state: Any
    _given: Given
    _outside: votes.Outside | None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    # Learning ----------------------------------------------------------------------------------

    def _learn(self, X: Features, y: Any, client: Any) -> None:
        """Grow the trees, and tabulate what their leaves predict."""
        n, p = X.values.shape
        runner = place(client, self.n_jobs)
        given = check_given(self.distance, y, n, X.labels)
        old = getattr(self, "_forest", None) if self.warm_start else None
        recipe = recipe_of(self, given.notion, n, p, old)
        recipe = dataclasses.replace(recipe, tables="votes")
        if old is not None:
            check_continues(old, recipe, n, p, self.random_state)
        self._forest, self._given = fit(recipe, X.values, given, runner, old), given
        self._outside = None
        self._forget_names()
        self.n_features_in_ = p
        if X.names is not None:
            self.feature_names_in_ = np.asarray(X.names, object)

    def _predict(self, X) -> np.ndarray:
        """What the leaves predict, (a, q) float64."""
        forest = self._fitted()
        return votes.predict(forest, self._features(X).values, self._here())

    def _out_of_bag(self) -> votes.Outside:
        """What they predict for training rows that were out of bag; told once, then kept."""
        forest = self._fitted()
        if self._outside is None:
            self._outside = votes.out_of_bag(forest, self._given, self._here())
        return self._outside

    @property
    def oob_count_(self):
        """Trees for which each training row was out of bag: (n,) int64."""
        return self._out_of_bag().n_trees

    # Who votes for whom ------------------------------------------------------------------------

    def connection(self, XA, XB=None, sparse=True):
        """K(x, z) of KeRF, equation (1): the share of trees in which two rows share a leaf.

        Parameters
        ----------
        XA, XB : (a, p), (b, p) array-like; XB=None means XA
        sparse : bool
            Give a sparse array, or a dense one.

        Returns
        -------
        (a, b) float64 sparse array or ndarray
            From 0 to 1; 1 where a row meets itself. Positive semi-definite.

        Raises
        ------
        SpecError
            So many pairs share leaves that they may take more than half of the memory.
        """
        ones = self.apply(XA)
        found = sharing.connection(self._forest, ones, ones if XB is None else self.apply(XB))
        return found if sparse else found.toarray()

    def forest_weights(self, X):
        """W of KeRF's equation (6): how much each training row counts in each prediction.

        ``forest_weights(X) @ y`` is what the leaves predict for X, whatever rows vote in them and
        however they are weighed. For a classifier take y one-hot: it is then the posteriors, as
        they are before calibration.

        Parameters
        ----------
        X : (a, p) array-like

        Returns
        -------
        (a, n) float64 sparse array
            Each row sums to 1.

        Raises
        ------
        SpecError
            It may take more than half of the memory.
        """
        return sharing.forest_weights(self._fitted(), self._given, self.apply(X))

    def proximity(self, X=None):
        """RF-GAP proximities (Rhodes et al. 2023): how much a training row counts for another.

        Parameters
        ----------
        X : (a, p) array-like, optional
            None asks for the training rows, each by the trees that were not grown on it:
            ``proximity() @ y`` are then the out-of-bag predictions. Other rows are asked of all
            trees, which is `forest_weights`.

        Returns
        -------
        (a, n) float64 sparse array
            Each row sums to 1, or is empty where a training row was never out of bag. No training
            row counts for itself. Not symmetric; where that is needed take ``(P + P.T) / 2``.
        """
        if X is not None:
            return self.forest_weights(X)
        return sharing.proximity(self._fitted(), self._given)

    # Keeping -----------------------------------------------------------------------------------

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and facts that `save` stores."""
        arrays, facts = super().to_arrays()
        arrays |= {f"given.{name}": array for name, array in self._given.arrays.items()}
        return arrays, facts | {"given": self._given.facts}

    def from_arrays(self, arrays: dict[str, np.ndarray], facts: dict[str, Any]):
        """Take over what was stored; return self."""
        super().from_arrays(arrays, facts)
        self._given = Given(self._forest.recipe.notion, under("given.", arrays), facts["given"])
        self._outside = None
        return self


def shape_of_response(y: Any) -> tuple[int, ...]:
    """The shape of y, whatever it is."""
    return tuple(y.shape) if hasattr(y, "shape") else np.asarray(y).shape


def preset(**defaults: Any) -> Callable[[Any], Any]:
    """Class decorator: the parameters of the parent with other defaults; registers the model.

    The constructor's signature has them, so that `get_params`, `clone` and ``help`` see them.
    """

    def change(cls: Any) -> Any:
        parent = cls.__mro__[1].__init__
        signature = inspect.signature(parent)
        own = [
            each.replace(default=defaults.get(name, each.default))
            for name, each in signature.parameters.items()
        ]
        own_signature = signature.replace(parameters=own)

        def construct(*args, **kwargs):
            given = own_signature.bind(*args, **kwargs)
            given.apply_defaults()
            parent(*given.args, **given.kwargs)

        cls.__init__ = functools.wraps(parent)(construct)
        cls.__init__.__signature__ = own_signature
        return model(cls)

    return change
