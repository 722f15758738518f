"""Benchmarks: ratios measured in one process on one machine, and how good the answers are.

Each module in `BENCHMARKS` has ``run(scale) -> list of rows`` with scale "toy" or "full".
With dforest installed, in the folder ``tests``, ``python -m benchmarks [names] --scale full``
prints their tables. Real data is looked for in ``$DFOREST_DATA``.
"""

BENCHMARKS = (
    "perception",
    "connectome",
    "synthetic",
    "missing",
    "growth",
    "capped",
    "kerf",
    "network",
    "answers",
    "out_of_core",
)
