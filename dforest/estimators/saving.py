"""Models on disk: every class saves the same way, and `load` gives back what was saved."""

import os
from typing import Any

import numpy as np

from dforest.errors import StoreError
from dforest.store.bundle import load_bundle, save_bundle

MODELS: dict[str, type] = {}  # by class name: all that may be loaded; nothing is imported by name


def model(cls: type) -> type:
    """Class decorator: instances can be saved and loaded.

    The class has ``to_arrays()`` and ``from_arrays(arrays, facts)``.
    """
    MODELS[cls.__name__] = cls
    return cls


def save_model(estimator: Any, path: str | os.PathLike) -> None:
    """Save a fitted estimator as one store: flat arrays, its parameters as JSON, no pickle."""
    arrays, facts = estimator.to_arrays()
    said = {"class": type(estimator).__name__, "parameters": _plain(estimator), "model": facts}
    save_bundle(path, "forest", arrays, said)


def load(path: str | os.PathLike) -> Any:
    """Load a model that was saved: whole, or a `StoreError`.

    Parameters
    ----------
    path : path-like
        A folder that ``save`` of an estimator wrote.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dforest import DistanceForest, load
    >>> X = np.arange(6.0)[:, None]
    >>> forest = DistanceForest(n_estimators=2, random_state=0).fit(X, abs(X - X.T))
    >>> path = tempfile.mkdtemp() + "/model"
    >>> forest.save(path)
    >>> (load(path).pairwise(X) == forest.pairwise(X)).all()
    np.True_
    """
    arrays, said = load_bundle(path)
    cls = MODELS.get(said.get("class", ""))
    if cls is None:
        raise StoreError(
            f"{path} holds a {said.get('class')!r}, which this dforest does not know; "
            f"it knows {', '.join(sorted(MODELS))}"
        )
    return cls(**said["parameters"]).from_arrays(arrays, said["model"])


def _plain(estimator: Any) -> dict[str, Any]:
    """Parameters as JSON can say them; a random generator is not one of the things learned."""
    parameters = estimator.get_params(deep=False)
    for name, value in parameters.items():
        value = value.item() if isinstance(value, np.generic) else value
        parameters[name] = value if isinstance(value, str | int | float | bool | None) else None
    return parameters
