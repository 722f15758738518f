"""How much memory a process may use: its own limits count."""

import resource
import subprocess
import sys

import pytest
from distributed import Client, LocalCluster

from dforest.errors import SpecError
from dforest.run.cluster import Cluster
from dforest.run.memory import BASE, Room, memory_bytes, room_of

ASK = """
import resource, sys
from dforest.run.memory import memory_bytes
kind = getattr(resource, sys.argv[1])
resource.setrlimit(kind, (int(sys.argv[2]), resource.getrlimit(kind)[1]))
assert memory_bytes() == int(sys.argv[2]), memory_bytes()
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_memory_bytes__obeys_the_limits_of_the_process(kind):
    assert hasattr(resource, kind)
    subprocess.run([sys.executable, "-c", ASK, kind, str(1 << 30)], timeout=120, check=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"memory_limit": 10 * 2**30, "threads_per_worker": 2}, Room(2**33 - BASE, 2)),
        ({"memory_limit": None}, Room(int(0.8 * memory_bytes()) - BASE, 1)),
        ({"memory_limit": 0, "n_workers": 3}, Room(int(0.8 * (memory_bytes() // 3)) - BASE, 1)),
    ],
)
def test_room_of__takes_a_workers_limit_or_its_share_of_the_host(options, expected):
    defaults = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    cluster = LocalCluster(**{**defaults, "processes": False, **options})
    with cluster, Client(cluster, set_as_default=False) as client:
        assert room_of(Cluster(client)) == expected


def test_room_of__is_that_of_the_weakest_worker_and_refuses_one_without_any():
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "processes": False}
    with (
        LocalCluster(n_workers=1, memory_limit="4GiB", **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.new_spec["options"]["memory_limit"] = "2GiB"
        cluster.scale(2)
        client.wait_for_workers(2)
        assert room_of(Cluster(client)) == Room(int(0.8 * 2**31) - BASE, 1)
        cluster.new_spec["options"]["memory_limit"] = "512MiB"
        cluster.scale(3)
        client.wait_for_workers(3)
        with pytest.raises(SpecError, match="limit is 536,870,912 bytes, of which tasks"):
            room_of(Cluster(client))
