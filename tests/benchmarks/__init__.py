"""Benchmarks: ratios measured in one process on one machine, and how good the answers are.

Each module in `BENCHMARKS` has ``run(scale) -> list of rows`` with scale "toy" or "full".
From the folder ``tests``: ``python -m benchmarks [names] --scale full`` prints their tables.
"""

BENCHMARKS = ("perception", "connectome", "synthetic", "growth")
