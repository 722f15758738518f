"""Ranking measures against counting pairs."""

import numpy as np
import pytest

from dforest.errors import DataError
from dforest.estimators.scores import ranking_scores


def test_ranking_scores__auc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    yes, scores = rng.random(60) < 0.3, rng.integers(0, 9, 60) / 8.0
    a, b = scores[yes][:, None], scores[~yes]
    share = ((a > b) + 0.5 * (a == b)).mean()
    assert ranking_scores(yes, scores)["auc"] == pytest.approx(share)


def test_ranking_scores__average_precision_is_the_mean_precision_at_each_hit():
    yes = np.array([True, False, True, True, False])
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    expected = (1 / 1 + 2 / 3 + 3 / 4) / 3
    assert ranking_scores(yes, scores)["average_precision"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("yes", "scores", "why"),
    [
        ([True, True], [1, 2], "all 2 answers are True"),
        ([True, False], [1, np.nan], "score 1 is NaN"),
        ([True, False], [1, 2, 3], "give one score each"),
    ],
)
def test_ranking_scores__refuses_what_cannot_be_ranked(yes, scores, why):
    with pytest.raises(DataError, match=why):
        ranking_scores(yes, scores)
