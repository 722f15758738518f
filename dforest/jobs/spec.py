"""Job files: the models they are checked against, and the JSON Schema that editors read."""

import os
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, TypeAdapter, model_validator

from dforest.errors import SpecError
from dforest.jobs.keys import Keys, Place
from dforest.jobs.reading import check, override, read_yaml

Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Limit = Annotated[int | float | None, Field(gt=0)]


class ForestSpec(Keys):
    """How trees are grown and tabulated: the parameters of ``dforest.DistanceForest``."""

    n_estimators: Count = Field(default=100, description="Number of trees.")
    max_samples: Limit = Field(
        default=None, description="Rows each tree draws: a number, or a share."
    )
    bootstrap: bool = Field(default=True, description="Draw rows with replacement.")
    max_features: Literal["sqrt", "log2"] | int | float | None = Field(
        default="sqrt",
        description="Features tried at each node: a rule, a number, a share, null for all.",
    )
    max_depth: Count | None = Field(default=None, description="Deepest level of a tree.")
    max_leaf_nodes: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="Most leaves."
    )
    min_samples_leaf: Count = Field(default=5, description="Fewest rows of a leaf.")
    min_samples_split: Annotated[int, Field(ge=2)] = Field(
        default=2, description="Fewest rows of a node that is split."
    )
    min_impurity_decrease: Annotated[float, Field(ge=0)] = Field(
        default=0.0, description="Least gain of a split, as a share of the root's rows."
    )
    max_split_rows: Annotated[int, Field(ge=10)] | None = Field(
        default=2_000, description="Rows on which a node's split is searched; null for all of them."
    )
    max_bins: Annotated[int, Field(ge=2, le=255)] | None = Field(
        default=None, description="Quantile bins of each feature; null cuts between any two values."
    )
    projections: Literal["axis", "sparse"] = Field(
        default="axis", description="Cut single features, or sums of a few with signs."
    )
    leaf_rows: Literal["in_bag", "out_of_bag", "all"] = Field(
        default="in_bag", description="Rows that vote in the leaves; out_of_bag is honest."
    )
    weighting: Literal["tree", "kernel"] = Field(
        default="tree", description="Average leaf by leaf, or once over the forest."
    )
    self_pairs: bool = Field(
        default=True, description="A row's distance to itself counts in its leaf."
    )
    pool_size: Annotated[int, Field(ge=2)] | None = Field(
        default=None, description="Rows that trees may draw from when the matrix exceeds memory."
    )
    table_budget: Count = Field(
        default=1 << 30, description="Bytes of dense leaf tables; beyond it they get coarser."
    )


class Job(Keys):
    """What every job file has."""

    output: Place = Field(description="Folder for the results; made if missing.")
    points: Place = Field(description="Features: a dataset store, a .npy, or scipy's .npz.")
    feature_noun: str = Field(
        default="feature", description="What a feature without a name is called."
    )
    seed: Annotated[int, Field(ge=0)] = Field(default=0, description="Of every random choice.")
    threads: Count | None = Field(
        default=None, description="Threads when there is no cluster; null for one a processor."
    )
    inputs: ClassVar[tuple[str, ...]] = ("points", "graph")  # keys that name what is read


class GraphSpectrum(Keys):
    """Columns of the graph's spectrum as the trees' response."""

    graph_spectrum: Count = Field(description="Singular vectors of the normalised graph.")


class Walks(Keys):
    """What leaves hold beside links: pairs that a walk of several links connects."""

    steps: Annotated[int, Field(ge=2)] = Field(default=2, description="Longest walk, in links.")
    share: Annotated[float, Field(gt=0)] = Field(
        default=1.0, description="Its weight beside a link."
    )


class LinkFolds(Keys):
    """How predicted links are judged."""

    folds: Annotated[int, Field(ge=2)] = Field(
        default=5,
        description="Parts the rows are dealt into; each is held out once, links and all.",
    )
    non_links: Annotated[float, Field(gt=0)] = Field(
        default=5.0, description="Random pairs without a link, for each link."
    )


class LinkPrediction(Job):
    """Learn from some rows of a graph which rows are linked; judge it on rows never seen."""

    kind: Literal["link_prediction"]
    graph: Place = Field(description="Links: a graph store, or scipy's .npz, symmetric.")
    response: GraphSpectrum | Literal["adjacency", "links"] = Field(
        default=GraphSpectrum(graph_spectrum=64),
        description="What trees are grown to explain: {graph_spectrum: columns}, rows of the "
        "adjacency, or the links themselves.",
    )
    walks: Walks | None = Field(
        default=None, description="Let leaves hold walks over several links beside the links."
    )
    forest: ForestSpec = ForestSpec()
    evaluate: LinkFolds = LinkFolds()


class Folds(Keys):
    """How a learned distance is judged."""

    folds: Annotated[int, Field(ge=2)] = Field(
        default=5, description="Parts the rows are dealt into; each is held out once."
    )


class DistanceForestJob(Job):
    """Learn a distance between rows from distances, links, labels or responses."""

    kind: Literal["distance_forest"]
    inputs: ClassVar[tuple[str, ...]] = ("points", "matrix", "graph")
    distance: Literal["precomputed", "graph", "indicator", "half_squared", "absolute"] = Field(
        default="precomputed", description="What the distance between training rows is."
    )
    matrix: Place | None = Field(
        default=None, description="For precomputed: a matrix store, or a square .npy."
    )
    graph: Place | None = Field(
        default=None, description="For graph: a graph store, or scipy's .npz, symmetric."
    )
    forest: ForestSpec = ForestSpec()
    evaluate: Folds | None = Field(default=None, description="Cross-validate before the last fit.")

    @model_validator(mode="after")
    def _source_fits_distance(self):
        wanted = {"precomputed": "matrix", "graph": "graph"}.get(self.distance)
        for key in ("matrix", "graph"):
            if (getattr(self, key) is None) == (key == wanted):
                asks = "needs" if key == wanted else "takes no"
                raise ValueError(f"distance {self.distance!r} {asks} {key!r}")
        return self


DistanceName = Literal[
    "euclidean",
    "sqeuclidean",
    "minkowski",
    "manhattan",
    "chebyshev",
    "cosine",
    "correlation",
    "hamming",
]


class DistanceOptions(Keys):
    """Options of the distance; each takes its own only."""

    p: Annotated[float, Field(ge=1)] | None = Field(
        default=None, description="For minkowski: the exponent; null for 2."
    )
    w: list[float] | None = Field(
        default=None, description="For minkowski: weights of the features; null for all 1."
    )


class DistanceMatrixJob(Job):
    """Compute the distances of all rows with each other, tile by tile."""

    kind: Literal["distance_matrix"]
    inputs: ClassVar[tuple[str, ...]] = ("points", "model")
    distance: DistanceName | None = Field(
        default=None, description="Name of the distance; null where a model is given."
    )
    options: DistanceOptions = Field(
        default=DistanceOptions(), description="Options of the distance, where it has any."
    )
    model: Place | None = Field(
        default=None, description="A saved distance forest: the distance that it has learned."
    )
    symmetric: Literal["upper", "full"] = Field(
        default="upper",
        description="Store the tiles with row block <= column block only, or all of them.",
    )
    tile: Count = Field(default=1024, description="Rows and columns of a tile.")

    @model_validator(mode="after")
    def _one_distance(self):
        if (self.distance is None) == (self.model is None):
            found = "neither" if self.model is None else "both"
            raise ValueError(f"distance and model: give one of the two, got {found}")
        if self.model is not None and self.options != DistanceOptions():
            raise ValueError("options are for a named distance; a model takes none")
        return self


AnyJob = LinkPrediction | DistanceForestJob | DistanceMatrixJob
KINDS: dict[str, type[AnyJob]] = {
    "link_prediction": LinkPrediction,
    "distance_forest": DistanceForestJob,
    "distance_matrix": DistanceMatrixJob,
}


def read_job(path: str | os.PathLike, settings: Sequence[str] = ()) -> AnyJob:
    """Read and check a job file, with settings ``a.b=c`` laid over it.

    Raises
    ------
    SpecError
        One line that names the file, the key, its value, and what is known there.
    """
    given = override(read_yaml(path), settings)
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        found = "is missing" if kind is None else f"{kind!r} is not known"
        raise SpecError(f"{path}: kind: {found}; there are {', '.join(KINDS)}")
    return check(KINDS[kind], given, path, settings)


def job_schema() -> dict[str, Any]:
    """JSON Schema of job files: editors complete and check keys by it."""
    union = Annotated[AnyJob, Field(discriminator="kind")]
    schema: dict[str, Any] = TypeAdapter(union).json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dforest job file",
        **schema,
    }
