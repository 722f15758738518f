"""Where the tiles of a matrix lie, and whether a tile and its mirror image agree."""

from collections.abc import Iterator
from typing import Literal

import numpy as np

from dforest.errors import DataError, SpecError

TILE = 1024  # rows of a tile unless given: 4 MB of float32

Symmetry = Literal["upper", "full", "none"]


def check_layout(path, shape, tile: int, symmetric: str) -> None:
    """Refuse a matrix that cannot be cut into tiles."""
    if symmetric not in ("upper", "full", "none"):
        raise SpecError(f"symmetric must be 'upper', 'full' or 'none', got {symmetric!r}")
    if min(shape) < 1 or tile < 1:
        raise SpecError(f"{path}: shape {shape} and tile {tile} must be at least 1")
    if symmetric != "none" and shape[0] != shape[1]:
        raise SpecError(f"{path}: shape {shape} is not square; use symmetric='none'")


def numbers(shape, tile: int, symmetric: str) -> Iterator[tuple[int, int]]:
    """Yield (row block, column block) of the tiles that say everything."""
    for a in range(-(-shape[0] // tile)):
        for b in range(0 if symmetric == "none" else a, -(-shape[1] // tile)):
            yield a, b


def span(shape, tile: int, a: int, b: int) -> tuple[slice, slice]:
    """Rows and columns of one tile."""
    rows, columns = (slice(k * tile, min((k + 1) * tile, side)) for k, side in zip((a, b), shape))
    if not (0 <= rows.start < rows.stop and 0 <= columns.start < columns.stop):
        raise DataError(f"there is no tile ({a}, {b}) in a {shape} matrix of tiles of {tile} rows")
    return rows, columns


def worst_asymmetry(upper: np.ndarray, mirrored: np.ndarray) -> tuple[float, int, int]:
    """Largest |difference| of two tiles and its place; NaN opposite a number counts as infinite."""
    with np.errstate(invalid="ignore"):
        gap = np.abs(upper.astype(np.float64) - mirrored)
    gap[np.isnan(upper) & np.isnan(mirrored)] = 0.0
    gap[np.isnan(gap)] = np.inf
    i, j = np.unravel_index(gap.argmax(), gap.shape)
    return float(gap[i, j]), int(i), int(j)


def asymmetric(i: int, j: int, z_ij: float, z_ji: float) -> DataError:
    """Build the complaint about the worst pair of an asymmetric matrix."""
    return DataError(
        f"the matrix is not symmetric, worst at z[{i}, {j}] = {z_ij:.7g} but z[{j}, {i}] = "
        f"{z_ji:.7g}; make it symmetric first, as with Z = (Z + Z.T) / 2"
    )
