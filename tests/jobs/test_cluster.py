"""Cluster files become what the runner takes; nothing is started to check one."""

import pathlib

import pytest

from dforest.errors import SpecError
from dforest.jobs.cluster import as_bytes, cluster_at, read_cluster
from dforest.run.client import ClusterSpec

SHIPPED = sorted((pathlib.Path(__file__).parents[2] / "cluster_configs").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_shipped_cluster_files__are_right(path):
    assert isinstance(read_cluster(path), ClusterSpec)


def test_read_cluster__passes_everything_on(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        "version: 1\nmodule: a.b\nclass: C\nargs: [1]\nkwargs: {cores: 2}\n"
        "dforest: {n_workers: 3, wait: 5, patience: 60.5, memory_per_task: 2GiB}\n"
    )
    spec = ClusterSpec("a.b", "C", [1], {"cores": 2}, 3, 5, 60.5, 2**31)
    assert read_cluster(path) == spec


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("module: a\nclass: B\nworkers: 3", "unknown key 'workers'"),
        ("module: a\nclas: B", "unknown key 'clas'; the nearest known key is 'class'"),
        ("module: a", "class: is missing"),
        ("version: 2\nmodule: a\nclass: B", "version: must be 1, got 2"),
        ("module: a\nclass: B\ndforest: {wait: 0}", "dforest.wait: must be greater than 0"),
        ("module: a\nclass: B\ndforest: {memory_per_task: 2 loaves}", "got '2 loaves'"),
    ],
)
def test_read_cluster__names_file_and_key(tmp_path, text, complaint):
    path = tmp_path / "c.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=complaint) as caught:
        read_cluster(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_cluster_at__takes_addresses_files_and_the_environment(monkeypatch):
    assert cluster_at("tcp://host:8786") == "tcp://host:8786"
    assert isinstance(cluster_at(str(SHIPPED[0])), ClusterSpec)
    assert cluster_at(None) is None
    with pytest.raises(SpecError, match="cannot be read"):
        cluster_at("no-such-file.yaml")


def test_as_bytes__knows_units():
    assert [as_bytes(size) for size in (None, 7, "1KiB", "2 MB")] == [None, 7, 1024, 2_000_000]
