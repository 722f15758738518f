"""A small graph whose links follow the rows' features, and a job that learns it."""

import numpy as np
from scipy import sparse

JOB = """
kind: link_prediction
output: out
points: words.npz
graph: links.npz
response: {graph_spectrum: 4}
walks: {steps: 2}
forest: {n_estimators: 5, min_samples_leaf: 2, leaf_rows: all}
evaluate: {folds: 2, non_links: 2}
threads: 1
"""


def write_job(folder):
    """Write the job file of 60 rows in three groups; rows of a group share words and links."""
    rng = np.random.default_rng(0)
    group = np.arange(60) % 3
    words = rng.random((60, 12)) < np.where(np.arange(12) % 3 == group[:, None], 0.7, 0.1)
    links = rng.random((60, 60)) < np.where(group == group[:, None], 0.3, 0.01)
    links = np.triu(links, 1)
    sparse.save_npz(folder / "words.npz", sparse.csr_array(words.astype(np.float32)))
    sparse.save_npz(folder / "links.npz", sparse.csr_array((links + links.T).astype(np.float32)))
    path = folder / "job.yaml"
    path.write_text(JOB)
    return path
