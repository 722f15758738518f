"""How well scores rank what is true above what is not: scikit-learn's measures, with our errors."""

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from dforest.errors import DataError


def ranking_scores(is_true, scores) -> dict[str, float]:
    """Area under the ROC curve, and average precision.

    Parameters
    ----------
    is_true : (k,) bool
    scores : (k,) float
        The larger, the more likely to be true.

    Returns
    -------
    dict with ``auc`` and ``average_precision``, both in [0, 1]
        A coin has an AUC of 0.5 and an average precision of the share of what is true.

    Raises
    ------
    DataError
        Unequal lengths, NaN, or only one kind of answer.

    Examples
    --------
    >>> ranking_scores([True, False, True, False], [0.9, 0.8, 0.7, 0.1])
    {'auc': 0.75, 'average_precision': 0.8333333333333333}
    """
    is_true, scores = np.asarray(is_true, bool), np.asarray(scores, np.float64)
    if is_true.shape != scores.shape or is_true.ndim != 1:
        raise DataError(f"{is_true.shape} answers and {scores.shape} scores; give one score each")
    if is_true.all() or not is_true.any():
        raise DataError(f"all {len(is_true)} answers are {is_true[:1].any()}; a ranking needs both")
    if np.isnan(scores).any():
        raise DataError(f"score {np.flatnonzero(np.isnan(scores))[0]} is NaN; it cannot be ranked")
    return {
        "auc": float(roc_auc_score(is_true, scores)),
        "average_precision": float(average_precision_score(is_true, scores)),
    }
