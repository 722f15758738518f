"""How much memory a process may use: its own limits count."""

import resource
import subprocess
import sys

import pytest

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
