"""scikit-learn's own checks of what calls itself an estimator."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import dforest as df

ALL = (
    df.ForestClassifier, df.UncertaintyForestClassifier, df.KernelForestClassifier,
    df.ForestRegressor, df.KernelForestRegressor,
)  # fmt: skip
SMALL = {"n_estimators": 10, "random_state": 0, "n_jobs": 1}


@pytest.mark.filterwarnings("default")
@parametrize_with_checks([kind(**SMALL) for kind in ALL])
def test_scikit_learn__finds_nothing_wrong(estimator, check):
    check(estimator)
