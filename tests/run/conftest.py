"""Clusters on this machine, started once."""

import pytest
from distributed import Client, LocalCluster


@pytest.fixture(scope="package")
def two_workers():
    """Client of two worker processes with one thread each."""
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def client(two_workers):
    """Client with both workers there, whatever happened to them before."""
    two_workers.wait_for_workers(2, timeout=30)
    return two_workers
