"""Imports only go down, and each third party has one door."""

import ast
import pathlib

import pytest

FLOORS = [
    {"errors", "arrays", "jit", "seeds"},
    {"distances", "tree", "store", "run"},
    {"methods"},
    {"estimators"},
    {"report"},
    {"jobs"},
    {"cli"},
]
DOORS = {
    "numba": {"jit"},
    "rapidfuzz": {"distances"},
    "zarr": {"store"},
    "pyarrow": {"store"},
    "dask": {"run"},
    "distributed": {"run"},
    "cloudpickle": {"run"},
    "sklearn": {"estimators", "errors"},  # errors: ours are also scikit-learn's NotFittedError
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "pydantic": {"jobs"},
    "yaml": {"jobs"},
    "click": {"cli"},
    "rich": {"cli"},
}
FREE = {"numpy", "scipy"}  # the language of arrays, spoken on every floor
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
ROOT = pathlib.Path(__file__).parents[1] / "dforest"
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module.split(".")
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)


def test_files__are_found():
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports__go_down_and_through_doors(path):
    room = path.relative_to(ROOT).with_suffix("").parts[0]
    for top, *rest in imports(path):
        assert room in DOORS.get(top, {room}), f"{top} may be imported only in {DOORS[top]}"
        if top == "dforest" and rest and rest[0] != room:
            is_below = FLOOR[rest[0]] < FLOOR[room] or FLOOR[room] == 0
            assert is_below, f"{room} must not import {rest[0]}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files__are_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) <= 400
