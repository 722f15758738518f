"""Random streams by name: the same tree draws the same numbers wherever and whenever it grows."""

import numbers
import zlib

import numpy as np

from dforest.errors import SpecError
from dforest.jit import jit


def stream(seed: int, *path: str | int) -> np.random.Generator:
    """The random stream of one thing, as in ``stream(seed, "tree", 12, "rows")``.

    >>> stream(0, "tree", 1).integers(100) == stream(0, "tree", 1).integers(100)
    np.True_
    """
    words = [zlib.crc32(str(part).encode()) for part in path]
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=words))


def fresh_seed(random_state) -> int:
    """A seed from what scikit-learn calls a random state: None, a number, or a generator.

    >>> fresh_seed(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint64))
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral):
        kind = type(random_state).__name__
        raise SpecError(
            f"random_state={random_state!r} is a {kind}; give None, a whole number, or a generator"
        )
    if random_state < 0:
        raise SpecError(f"random_state={random_state} is negative; give a number of at least 0")
    return int(random_state)


@jit
def scramble(key):
    """SplitMix64's finalizer (Steele et al. 2014): uint64 -> uint64, a mixing bijection."""
    key = np.uint64(key) + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@jit
def child_key(key, side):
    """Key of a node's left (0) or right (1) child: draws depend on the path alone."""
    return scramble(np.uint64(key) ^ (np.uint64(0xA0761D6478BD642F) + np.uint64(side)))


@jit
def draw_below(key, turn, limit):
    """The ``turn``-th draw of the stream ``key``: a whole number in [0, limit), limit < 2**32."""
    word = scramble(np.uint64(key) + np.uint64(turn) * np.uint64(0xD1342543DE82EF95))
    return np.int64(((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))
