"""Steps and a keeper that travel to workers by name."""

import json
import os
import pathlib
import signal
import time
from dataclasses import dataclass

import numpy as np
import yaml
from distributed import get_worker

from dforest import errors
from dforest.run.client import ClusterSpec
from dforest.run.passes import Pass


def noise(block):
    """Float32 numbers whose sum depends on the order of adding: {"x": (500,)}."""
    rng = np.random.default_rng(block)
    return {"x": rng.normal(0, 10.0 ** rng.integers(-3, 4), 500).astype(np.float32)}


def add(left, right):
    return {name: left[name] + right[name] for name in left}


def slow_noise(block, seconds=0.05):
    time.sleep(seconds)
    return noise(block)


def die_once(block, folder, fatal):
    """Kill this process at one block, but only the first time."""
    mark = pathlib.Path(folder) / "died"
    if block == fatal and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return slow_noise(block)


def die_together(block, folder):
    """Kill this process at the first block that any process meets."""
    mark = pathlib.Path(folder) / str(os.getpid())
    if len(list(pathlib.Path(folder).iterdir())) < 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return slow_noise(block)


def die(block):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(block, kind, fatal):
    if block == fatal:
        raise getattr(errors, kind)(f"block {block}: has -1 rows, at least 0 are needed")
    return noise(block)


def raise_once_asked(block, error):
    if block == 5:
        raise error
    return noise(block)


def fail_and_log(block, folder, error):
    """Leave one file for each call, then fail."""
    log_call(block, folder)
    raise error


def log_call(block, folder):
    """Leave one file for each call."""
    name = f"{block}-{time.monotonic_ns()}-{os.getpid()}"
    (pathlib.Path(folder) / name).touch()
    return noise(block)


def name_task(block):
    """Return the key of the Dask task that this is, as code points."""
    return {"key": np.array([ord(letter) for letter in get_worker().get_current_task()])}


def read_spec(name, **changes):
    """Read one of the cluster files that are shipped."""
    folder = pathlib.Path(__file__).parents[2] / "cluster_configs"
    file = yaml.safe_load((folder / f"{name}.yaml").read_text())
    assert file.pop("version") == 1
    values = {"class_name": file.pop("class"), **file.pop("dforest"), **file}
    return ClusterSpec(**{**values, **changes})


def calls(folder):
    """Return the blocks that `log_call` was called with."""
    return sorted(int(path.name.split("-")[0]) for path in pathlib.Path(folder).iterdir())


@dataclass(frozen=True)
class Folder:
    """A keeper as simple as can be: one JSON file for each key."""

    path: str

    def read(self, key):
        file = pathlib.Path(self.path) / f"{key}.json"
        if not file.exists():
            return None
        return {k: np.array(v, np.float32) for k, v in json.loads(file.read_text()).items()}

    def write(self, key, part):
        file = pathlib.Path(self.path) / f"{key}.json"
        wip = file.with_suffix(f".{os.getpid()}")
        wip.write_text(json.dumps({k: v.tolist() for k, v in part.items()}))
        os.replace(wip, file)
        file.with_suffix(".writer").write_text(str(os.getpid()))


GRID = [[0, 1, 2, 3, 4], [5], [6, 7, 8], [9, 10], *([i] for i in range(11, 23))]


def job(step=noise, **changes):
    """Make a pass of 16 groups and 23 blocks."""
    return Pass(**{"name": "add-noise", "step": step, "grid": GRID, "merge": add, **changes})


def bits(parts):
    """Bytes of a pass's answer."""
    return [{name: (a.dtype.str, a.shape, a.tobytes()) for name, a in p.items()} for p in parts]
