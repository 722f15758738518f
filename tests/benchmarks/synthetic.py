"""z = |y - y'| on 16 features: the authors' R code, and ours.

20 trees, 4 candidate features of 16, bootstrap, nodes of 10 rows may still split; judged on the
pairs of 200 other rows. Ours: means over tasks, seconds of one core, the checks of X and Z and the
leaf tables included.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

import dforest as df
from benchmarks.data import Task, synthetic
from benchmarks.harness import Row, worked


class Figures(NamedTuple):
    seconds: float  # to grow 20 trees, one core
    mae: float
    spearman: float  # mean over rows


# RerF(task="similarity") of neurodata/SPORF, R-Project, 20 trees, mtry 4, min.parent 10, bootstrap,
# one core; measured by this project on another machine, so that ratios of seconds are rough
AUTHORS_R = {
    400: Figures(1.9, 0.095, 0.72),
    800: Figures(6.8, 0.080, 0.81),
    1600: Figures(38.0, 0.070, 0.86),
    3200: Figures(206.0, np.nan, np.nan),
}
SIZES = {"toy": (100,), "full": tuple(AUTHORS_R)}
TASKS = {"toy": 1, "full": 5}


def judged(Z, guess) -> tuple[float, float]:
    """(mean absolute error over pairs, mean Spearman correlation of rows), self pairs left out."""
    others = ~np.eye(len(Z), dtype=bool)
    rows = [spearmanr(z[o], g[o]).statistic for z, g, o in zip(Z, guess, others, strict=True)]
    return float(abs(guess - Z)[others].mean()), float(np.mean(rows))


def forest(task: Task, Z, seed: int):
    """Ours, on one thread, with the R run's parameters."""
    return df.DistanceForest(
        n_estimators=20,
        max_features=4,
        min_samples_leaf=1,
        min_samples_split=10,
        max_split_rows=None,
        n_jobs=1,
        random_state=seed,
    ).fit(task.X, Z)


def reference(n: int, task: Task) -> list[Row]:
    """What stands beside the forest: R's figures where there are any, and the constant mean."""
    mean = task.Z[np.triu_indices(n, 1)].mean()
    others = ~np.eye(len(task.y_test), dtype=bool)
    rows: list[Row] = [
        {"n": n, "method": "constant", "MAE": abs(task.Z_test - mean)[others].mean()}
    ]
    if n in AUTHORS_R:
        seconds, mae, spearman = AUTHORS_R[n]
        rows.append(
            {"n": n, "method": "authors' R", "s": seconds, "MAE": mae, "Spearman": spearman}
        )
    return rows


def measured(n: int, n_tasks: int) -> Row:
    """The forest's own line: median seconds, mean errors, and the worst task's error."""
    found = []
    for seed in range(n_tasks):
        task = synthetic(n, seed=seed)
        Z = task.Z
        seconds, model = worked(forest, task, Z, seed)
        found.append((seconds, *judged(task.Z_test, model.pairwise(task.X_test))))
    all_seconds, mae, spearman = np.transpose(found)
    seconds = float(np.median(all_seconds))
    row: Row = {"ratio R/ours": AUTHORS_R[n].seconds / seconds} if n in AUTHORS_R else {}
    return row | {
        "n": n,
        "method": "DistanceForest",
        "s": seconds,
        "MAE": mae.mean(),
        "Spearman": spearman.mean(),
        "worst MAE": mae.max(),
    }


def run(scale: str) -> list[Row]:
    rows: list[Row] = []
    for n in SIZES[scale]:
        task = synthetic(n)
        forest(task, task.Z, 0)  # compiles
        rows += [*reference(n, task), measured(n, TASKS[scale])]
    return rows
