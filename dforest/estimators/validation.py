"""Judging a distance forest: cross-validation that slices Z both ways, permutation importance."""

import numbers
import time

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, check_cv
from sklearn.utils import Bunch

from dforest.arrays import check_count
from dforest.errors import DataError
from dforest.estimators.inputs import read_features, read_given
from dforest.methods import answers
from dforest.methods.asked import Asked
from dforest.methods.notions import NOTIONS, Given
from dforest.methods.scores import between, r_squared, score
from dforest.run.client import place
from dforest.seeds import fresh_seed, stream


def cross_validate(forest, X, Z, cv=5, *, groups=None, max_rows=4_000, client=None):
    """Fit a `DistanceForest` on some rows and judge it on the others, fold by fold.

    scikit-learn's function of this name slices rows only; here Z loses the rows and the columns of
    the fold, so that no distance of a held-out row is ever seen.

    Parameters
    ----------
    forest : DistanceForest
        Cloned for each fold.
    X, Z
        As for ``fit``.
    cv : int, splitter or iterable of (train, test)
        A number shuffles the rows into so many folds by the forest's ``random_state``.
    groups : (n,), optional
        Rows of one group are held out together; for a number ``cv``, or a splitter that asks.
    max_rows : int
        At most so many rows of each side are drawn to judge on, as pairs grow with the square.

    Returns
    -------
    dict of (folds,) float64
        ``test_score``: R^2 over known pairs of two held-out rows; ``seen_score``: of a held-out
        row with a training row; ``fit_time`` and ``score_time`` in seconds.

    Raises
    ------
    DataError
        ``groups`` is not of X's length, or X and Z are not what ``fit`` takes.
    SpecError
        ``cv`` is a number below 2 or above n, or a parameter of the forest is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from dforest import DistanceForest
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> forest = DistanceForest(n_estimators=20, random_state=0)
    >>> bool(cross_validate(forest, X, abs(X - X.T), cv=3)["test_score"].min() > 0.8)
    True
    """
    X = read_features(X, model=type(forest).__name__)
    runner = place(client, forest.n_jobs)
    features, given = X.values, read_given(forest.distance, Z, X, runner, forest.pool_size)
    most, seed = check_count("max_rows", max_rows, 2), fresh_seed(forest.random_state)
    found: dict[str, list[float]] = {
        "test_score": [], "seen_score": [], "fit_time": [], "score_time": []
    }  # fmt: skip
    for fold, (train, test) in enumerate(_folds(forest, cv, given, groups)):
        begin = time.perf_counter()
        fitted = clone(forest).fit(features[train], _only(given, train), client=client)
        middle = time.perf_counter()
        seen, unseen = (_some(rows, most, stream(seed, "judged", fold)) for rows in (train, test))
        apart = fitted.pairwise(features[unseen], features[seen], client=client)
        found["seen_score"].append(r_squared(between(given, unseen, seen), apart))
        judged = fitted.score(features[unseen], _only(given, unseen), client=client)
        found["test_score"].append(judged)
        found["fit_time"].append(middle - begin)
        found["score_time"].append(time.perf_counter() - middle)
    return {name: np.array(values) for name, values in found.items()}


def permutation_importance(forest, X, Z, *, n_repeats=5, max_rows=1_000, random_state=None):
    """How much R^2 over pairs falls when a feature's values are shuffled among the rows.

    Parameters
    ----------
    forest : DistanceForest
        Fitted.
    X, Z
        Rows and their distances, better others than were fitted.
    n_repeats : int
        Shuffles of each feature.
    max_rows : int
        At most so many rows are drawn to judge on, as their pairs grow with the square.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Bunch
        ``importances`` (p, n_repeats), ``importances_mean`` and ``importances_std`` (p,).

    Raises
    ------
    NotFittedError
        The forest is not fitted.
    SpecError
        ``n_repeats`` is below 1, or ``max_rows`` below 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dforest import DistanceForest
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> forest = DistanceForest("absolute", n_estimators=20, random_state=0).fit(X, X[:, 0])
    >>> mean = permutation_importance(forest, X, X[:, 0], random_state=0).importances_mean
    >>> bool(mean[0] > 10 * abs(mean[1]))
    True
    """
    model, X = forest._fitted(), forest._features(X)
    runner = forest._here()
    features, given = X.values, read_given(model.judged_as, Z, X, runner)
    seed, most = fresh_seed(random_state), check_count("max_rows", max_rows, 2)
    rows = _some(np.arange(given.n_rows), most, stream(seed, "judged"))
    judged = features[rows].toarray() if sparse.issparse(features) else features[rows]

    def judge(features) -> float:
        asked = Asked(model, answers.apply(model, features, runner))
        return score(asked, given, runner, rows)

    whole = judge(judged)
    drops = np.empty((judged.shape[1], check_count("n_repeats", n_repeats)))
    for feature in range(drops.shape[0]):
        for turn in range(n_repeats):
            shuffled = judged.copy()
            order = stream(seed, "shuffle", feature, turn).permutation(len(rows))
            shuffled[:, feature] = judged[order, feature]
            drops[feature, turn] = whole - judge(shuffled)
    return Bunch(
        importances=drops, importances_mean=drops.mean(axis=1), importances_std=drops.std(axis=1)
    )


def _some(rows: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """At most so many of the rows, drawn, in their order."""
    return rows if len(rows) <= most else np.sort(random.choice(rows, most, replace=False))


def _only(given: Given, rows) -> Given:
    return NOTIONS[given.notion].take(given, rows)


def _folds(forest, cv, given: Given, groups):
    """Pairs of row numbers (train, test)."""
    n = given.n_rows
    if groups is not None and len(groups) != n:
        raise DataError(f"groups has {len(groups)} entries, but X has {n} rows; give one a row")
    if isinstance(cv, numbers.Integral):
        cv = check_count("cv", cv, 2, n)
        seed = fresh_seed(forest.random_state)
        splitter = KFold if groups is None else GroupKFold
        cv = splitter(cv, shuffle=True, random_state=seed)
    target = given.arrays["y"] if given.notion == "indicator" else None
    for train, test in check_cv(cv).split(np.empty((n, 1)), target, groups):
        yield np.arange(n)[train], np.arange(n)[test]
