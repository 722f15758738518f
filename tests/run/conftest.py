"""Clusters on this machine, started once."""

import pytest
from distributed import Client, LocalCluster

from run import run_steps


@pytest.fixture(scope="package")
def two_workers():
    """Client of the two worker processes that `cluster_configs/local.yaml` asks for."""
    spec = run_steps.read_spec("local")
    options = {**spec.kwargs, "silence_logs": 50}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def client(two_workers):
    """Client with both workers there, whatever happened to them before."""
    two_workers.wait_for_workers(2, timeout=30)
    return two_workers
