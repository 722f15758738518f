"""From an estimator's parameters to a checked `Recipe`; a bad one is refused before any work."""

import numbers
from typing import Any

import numpy as np

from dforest.arrays import check_choice, check_count, check_fraction_or_count
from dforest.errors import SpecError
from dforest.methods.costs import largest_pool
from dforest.methods.model import Forest, Recipe
from dforest.methods.notions import NOTIONS
from dforest.run.memory import Room
from dforest.seeds import fresh_seed

MOST_DRAWS = 100  # times the rows there are
LEAF_ROWS = ("in_bag", "out_of_bag", "all")


def recipe_of(
    estimator: Any, notion: str, n: int, p: int, old: Forest | None = None, room: Room | None = None
) -> Recipe:
    """The recipe of a forest on n rows and p features; ``old`` lends its seed.

    With ``room``, distances are read from a store, and the pool is by default what fits there.
    """
    e = estimator
    pool = n if e.pool_size is None else min(check_count("pool_size", e.pool_size), n)
    if room is not None and e.pool_size is None:
        pool = (old.recipe.pool_size or n) if old else _pool_within(room, e, n)
    check_choice("distance", e.distance, NOTIONS)
    bootstrap, self_pairs = _flag("bootstrap", e.bootstrap), _flag("self_pairs", e.self_pairs)
    _flag("warm_start", e.warm_start)
    draws = pool
    if e.max_samples is not None:
        most = MOST_DRAWS * pool if e.bootstrap else pool
        draws = check_fraction_or_count("max_samples", e.max_samples, pool, high=most)
    recipe = Recipe(
        notion=notion,
        n_estimators=check_count("n_estimators", e.n_estimators),
        pool_size=pool if pool < n else None,
        n_draws=draws,
        bootstrap=bootstrap,
        max_features=_n_features(e.max_features, p),
        min_samples_leaf=check_fraction_or_count("min_samples_leaf", e.min_samples_leaf, draws),
        min_samples_split=check_fraction_or_count(
            "min_samples_split", e.min_samples_split, draws, low=2
        ),
        min_impurity_decrease=_at_least_0("min_impurity_decrease", e.min_impurity_decrease),
        max_depth=_optional("max_depth", e.max_depth),
        max_leaf_nodes=_optional("max_leaf_nodes", e.max_leaf_nodes, 2),
        max_split_rows=_optional("max_split_rows", e.max_split_rows, 10),
        max_bins=_optional("max_bins", e.max_bins, 2),
        projections=check_choice("projections", e.projections, ("axis", "sparse")),
        leaf_rows=check_choice("leaf_rows", e.leaf_rows, LEAF_ROWS),
        weighting=check_choice("weighting", e.weighting, ("tree", "kernel")),
        self_pairs=self_pairs,
        table_budget=check_count("table_budget", e.table_budget),
        seed=fresh_seed(e.random_state) if old is None else old.recipe.seed,
    )
    if recipe.leaf_rows == "out_of_bag" and not recipe.bootstrap and draws == n:
        raise SpecError(
            f'leaf_rows="out_of_bag" needs rows that a tree did not draw, but each draws all of '
            f"n_samples={n}; set bootstrap=True or max_samples=0.5"
        )
    return recipe


def _pool_within(room: Room, e: Any, n: int) -> int:
    check_count("n_estimators", e.n_estimators)
    check_count("table_budget", e.table_budget)
    _optional("max_split_rows", e.max_split_rows, 10)
    leaf = check_fraction_or_count("min_samples_leaf", e.min_samples_leaf, n)
    fewest = leaf if isinstance(e.min_samples_leaf, numbers.Integral) else 1
    return largest_pool(n, room, fewest, e.max_split_rows, e.table_budget, e.n_estimators)


def check_continues(old: Forest, recipe: Recipe, n: int, p: int, random_state: Any) -> None:
    """Refuse a warm start that would do more than add trees to the last fit; SpecError."""
    if recipe.n_estimators < len(old.trees):
        raise SpecError(
            f"n_estimators={recipe.n_estimators} is below the {len(old.trees)} trees of the last "
            "fit, and warm_start=True only adds; set warm_start=False"
        )
    same = vars(old.recipe) | {"n_estimators": recipe.n_estimators} == vars(recipe)
    is_reseeded = isinstance(random_state, numbers.Integral) and random_state != old.recipe.seed
    if not same or is_reseeded or (old.n_rows, old.n_features) != (n, p):
        raise SpecError(
            "warm_start=True adds trees to the last fit, but a parameter other than "
            "n_estimators, or the shape of X, has changed; set warm_start=False"
        )


def _flag(name: str, value: Any) -> bool:
    return bool(value) if isinstance(value, np.bool_) else check_choice(name, value, (True, False))


def _optional(name: str, value: Any, low: int = 1) -> int | None:
    return None if value is None else check_count(name, value, low, high=2**31 - 1)


def _at_least_0(name: str, value: Any) -> float:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not 0 <= float(value) < np.inf:
        raise SpecError(f"{name}={value!r} is out of range; give a number of at least 0")
    return float(value)


def _n_features(value: Any, p: int) -> int:
    if value is None:
        return p
    if isinstance(value, str):
        check_choice("max_features", value, ("sqrt", "log2"))
        return max(1, int(np.sqrt(p) if value == "sqrt" else np.log2(p)))
    return check_fraction_or_count("max_features", value, p, high=p)
