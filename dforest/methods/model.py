"""A forest that has learned: its recipe, its trees, and their leaf tables. No data but numbers."""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dforest.errors import StoreError
from dforest.seeds import stream
from dforest.tree.layout import Tree, joined, parted
from dforest.tree.leaves import TABLES, shape_of

SHAPE_FIELDS = ("node", "first", "stop", "parent")  # of a table: they follow from its tree


@dataclass(frozen=True)
class Recipe:
    """How a forest is grown and tabulated: checked parameters, all of them small facts."""

    notion: str
    n_estimators: int
    pool_size: int | None  # rows that trees may draw from; None for all
    n_draws: int  # rows drawn for a tree, from the pool
    bootstrap: bool
    max_features: int
    min_samples_leaf: int
    min_samples_split: int
    min_impurity_decrease: float
    max_depth: int | None
    max_leaf_nodes: int | None
    max_split_rows: int | None
    max_bins: int | None
    projections: str
    leaf_rows: str
    weighting: str
    self_pairs: bool
    table_budget: int
    seed: int
    tables: str = "pairs"  # what leaf tables tell: distances of "pairs", or "votes"


@dataclass
class Forest:
    """Trees and tables, and which rows each tree was grown on."""

    recipe: Recipe
    n_rows: int  # rows that the forest was fitted on
    n_features: int
    trees: list[Tree]
    tables: list[Any]  # one of `dforest.tree.leaves.TABLES` a tree
    table_notion: str  # notion of the tables: another than the trees' after a refit
    fallbacks: np.ndarray  # (T,) int64 pairs of leaves without a known z, filled from ancestors
    leaves: np.ndarray  # (n, T) int32 leaf of each row that was fitted
    pool_report: dict[str, float] | None = None  # how far answers move with the pool's size

    @property
    def judged_as(self) -> str:
        """Notion of distances to judge the tables by; `Pairs` and `Graph` name themselves."""
        is_named = self.table_notion in ("pairs", "graph")
        return "precomputed" if is_named else self.table_notion

    @functools.cached_property
    def pool(self) -> np.ndarray:
        """Rows that trees draw from, ascending (pool,) int64."""
        return draw_pool(self.recipe, self.n_rows)

    def bag(self, tree: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows that a tree was grown on, ascending, and how often each was drawn."""
        places, weights = draw_bag(self.recipe, len(self.pool), tree)
        return self.pool[places], weights


def draw_pool(recipe: Recipe, n_rows: int) -> np.ndarray:
    """Rows that trees draw from, ascending (pool,) int64: all of them, unless a size is given."""
    if recipe.pool_size is None:
        return np.arange(n_rows)
    return np.sort(stream(recipe.seed, "pool").choice(n_rows, recipe.pool_size, replace=False))


def draw_bag(recipe: Recipe, n_pool: int, tree: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw a tree's rows from its own stream: places in the pool, ascending, and how often each.

    (k,) int64 and (k,) float64.
    """
    numbers = stream(recipe.seed, "tree", tree, "rows")
    if recipe.bootstrap:
        draws = np.bincount(numbers.integers(n_pool, size=recipe.n_draws), minlength=n_pool)
        places = np.flatnonzero(draws)
        return places, draws[places].astype(np.float64)
    if recipe.n_draws == n_pool:
        return np.arange(n_pool), np.ones(n_pool)
    places = np.sort(numbers.choice(n_pool, recipe.n_draws, replace=False))
    return places, np.ones(len(places))


# Flat arrays: what is stored, and what comes back from workers ----------------------------------


def joined_tables(tables: list[Any]) -> dict[str, np.ndarray]:
    """Flat arrays of many tables of one kind; rows of a field follow each other, tree by tree."""
    kind = next(name for name, kind in TABLES.items() if isinstance(tables[0], kind))
    arrays = {"kind": np.array([kind])}
    for name in (field for field in tables[0]._fields if field not in SHAPE_FIELDS):
        values = [np.asarray(getattr(table, name)) for table in tables]
        if values[0].ndim:
            arrays[f"{name}.rows"] = np.array([len(value) for value in values], np.int64)
            arrays[name] = np.concatenate(values)
        else:
            arrays[name] = np.stack(values)
    return arrays


def parted_tables(arrays: dict[str, np.ndarray], trees: list[Tree]) -> list[Any]:
    """The tables that `joined_tables` put together; their trees give back the shapes."""
    cls: Any = TABLES[str(arrays["kind"][0])]
    own = [name for name in cls._fields if name not in SHAPE_FIELDS]
    ends = {
        name: np.append(0, np.cumsum(arrays[f"{name}.rows"]))
        for name in own
        if f"{name}.rows" in arrays
    }
    tables = []
    for t, tree in enumerate(trees):
        fields = {
            name: arrays[name][ends[name][t] : ends[name][t + 1]]
            if name in ends
            else arrays[name][t].item()
            for name in own
        }
        shape = shape_of(tree)._asdict()
        fields |= {name: shape[name] for name in SHAPE_FIELDS if name in cls._fields}
        tables.append(cls(**fields))
    return tables


def to_arrays(forest: Forest) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and facts to store."""
    arrays = {f"trees.{name}": array for name, array in joined(forest.trees).items()}
    for name, array in joined_tables(forest.tables).items():
        arrays[f"tables.{name}"] = array
    arrays |= {"fallbacks": forest.fallbacks, "leaves": forest.leaves}
    facts = {
        "recipe": dataclasses.asdict(forest.recipe),
        "n_rows": forest.n_rows,
        "n_features": forest.n_features,
        "table_notion": forest.table_notion,
        "pool_report": forest.pool_report,
    }
    return arrays, facts


def from_arrays(arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> Forest:
    """The forest that `to_arrays` took apart."""
    try:
        trees = parted(under("trees.", arrays))
        return Forest(
            Recipe(**facts["recipe"]),
            facts["n_rows"],
            facts["n_features"],
            trees,
            parted_tables(under("tables.", arrays), trees),
            facts["table_notion"],
            arrays["fallbacks"],
            arrays["leaves"],
            facts.get("pool_report"),
        )
    except (KeyError, TypeError) as error:
        raise StoreError(f"a stored forest lacks {error}; save the model again") from None


def under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays whose name begins with ``prefix``, by the rest of it."""
    return {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
