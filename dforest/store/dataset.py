"""Datasets: points with ids, labels and responses, written and read block by block."""

import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
import zarr
from scipy import sparse

from dforest.errors import DataError, SpecError, StoreError
from dforest.store import schema
from dforest.store.columns import NAMES_PER_BLOCK, STRING, Column, as_ids, check_unique, read_ids
from dforest.store.disk import link_or_copy, writing
from dforest.store.points import DensePoints, Points, SparsePoints, as_points
from dforest.store.staging import Staging


class Dataset:
    """A stored dataset; opening reads its facts, not its arrays.

    Parameters
    ----------
    path : path-like
    generation : str, optional
        See `dforest.store.schema.open_group`. A pickled dataset opens the generation it was.

    Attributes
    ----------
    n_rows, n_features : int
    feature_names : tuple of str or None
    points : Points
        ``points.read(start, stop)`` and ``points.row_blocks()``.
    facts : dict

    Examples
    --------
    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/flowers"
    >>> with DatasetWriter(path, feature_names=["width", "height"]) as writer:
    ...     writer.write(np.eye(2), ids=["a", "b"], labels=["rose", "iris"])
    ...     writer.write(np.ones((1, 2)), ids=["c"], labels=["rose"])
    ...     _ = writer.publish()
    >>> flowers = Dataset(path)
    >>> flowers.points.read(1, 3)
    array([[0., 1.],
           [1., 1.]], dtype=float32)
    >>> flowers.labels
    array(['rose', 'iris', 'rose'], dtype='<U4')
    """

    def __init__(self, path, generation: str | None = None):
        self.path = pathlib.Path(path).absolute()
        self._group = schema.open_group(path, "dataset", generation)
        self.facts = schema.facts(self._group)
        self.generation = schema.folder_of(self._group).name
        self.points = Points(self._group)
        self.n_rows, self.n_features = self.points.shape
        names = self.facts["feature_names"]
        self.feature_names = None if names is None else tuple(names)

    def __reduce__(self):
        return Dataset, (str(self.path), self.generation)

    def __repr__(self):
        return f"Dataset({str(self.path)!r})"

    @property
    def ids(self) -> np.ndarray | None:
        """Names of the rows, (n_rows,) strings, or None."""
        return read_ids(self._group)

    @property
    def labels(self) -> np.ndarray | None:
        """Class of each row, (n_rows,) strings or integers, or None."""
        if not self.facts["has_labels"]:
            return None
        classes = self._classes()
        if self.facts["labels_are_numbers"]:
            classes = classes.astype(np.int64)
        return classes[schema.read(schema.member(self._group, "codes"))]

    def class_counts(self) -> dict[str, int]:
        """Rows of each class, by its label, in sorted order; {} without labels."""
        if not self.facts["has_labels"]:
            return {}
        classes = self._classes().tolist()
        codes = schema.read(schema.member(self._group, "codes"))
        counts = np.bincount(codes, minlength=len(classes)).tolist()
        return dict(sorted(zip(classes, counts)))

    def _classes(self) -> np.ndarray:
        return schema.as_text(schema.read(schema.member(self._group, "classes")))

    @property
    def response(self) -> np.ndarray | None:
        """Responses, (n_rows, q) float64, or None."""
        if not self.facts["has_response"]:
            return None
        return schema.read(schema.member(self._group, "response"))

    def row_blocks(self) -> list[slice]:
        """Rows of each stored block of points."""
        return self.points.row_blocks()


class DatasetWriter:
    """Write a dataset block by block, its length not known before; publish it whole.

    Use as a ``with`` block: what is not published is removed at its end.

    Parameters
    ----------
    path : path-like
    dtype : {"float32", "float64"}
        Of the points.
    feature_names, response_names : sequence of str, optional
    block_rows : int, optional
        Rows of a stored block; about 4 MB of points unless given.
    update : bool
        Add rows to the dataset that is at ``path``, in its dtype and blocks. Its full blocks are
        shared (hard links), not copied.
    """

    def __init__(self, path, *, dtype="float32", feature_names: Sequence[str] | None = None,
                 response_names: Sequence[str] | None = None, block_rows: int | None = None,
                 update: bool = False):  # fmt: skip
        if np.dtype(dtype) not in (np.dtype("float32"), np.dtype("float64")):
            raise SpecError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
        self._staging = Staging(path, "dataset")
        try:
            self._begun: dict[str, Any] = {}  # facts fixed by the first rows
            self._columns: dict[str, Column] = {}
            self._classes: dict[str, int] = {}
            self._points: DensePoints | SparsePoints | None = None
            self._n_missing = self.n_rows = 0
            self.dtype, self._block_rows = str(np.dtype(dtype)), block_rows
            self._feature_names = None if feature_names is None else list(feature_names)
            self._response_names = None if response_names is None else list(response_names)
            if update:
                self._take_over()
        except BaseException:
            self._staging.close()
            raise

    def write(self, points, *, ids=None, labels=None, response=None) -> None:
        """Append rows.

        Parameters
        ----------
        points : (rows, p) numbers, ndarray or scipy sparse
            NaN where unknown. Rows are stored dense or sparse as the first ones were.
        ids : (rows,) strings or whole numbers, optional
        labels : (rows,) strings or whole numbers, optional
        response : (rows,) or (rows, q) numbers, optional

        Raises
        ------
        DataError
            If these rows do not fit together or do not fit the ones before.
        """
        points = as_points(points, self.dtype, self.n_rows)
        given = {
            "ids": None if ids is None else as_ids(ids),
            "codes": None if labels is None else self._encode(labels),
            "response": None if response is None else _as_response(response),
        }
        extras = {name: values for name, values in given.items() if values is not None}
        for name, values in extras.items():
            if len(values) != points.shape[0]:
                raise DataError(f"{len(values)} {name} were given for {points.shape[0]} rows")
        if not self._begun:
            self._begin(points, extras)
        self._compare(points, extras)
        self._points.append(points)  # type: ignore[union-attr]
        for name, values in extras.items():
            self._columns[name].append(values)
        self.n_rows += points.shape[0]
        known = points.data if sparse.issparse(points) else points
        self._n_missing += int(np.isnan(known).sum())

    def publish(self, **facts) -> pathlib.Path:
        """Make the dataset readable at its path, in one step.

        Raises
        ------
        DataError
            If there are no rows, or an id names two of them.
        """
        if self.n_rows == 0:
            raise DataError(f"{self._staging.path}: there are no rows to store")
        for part in [self._points, *self._columns.values()]:
            part.finish()  # type: ignore[union-attr]
        group, names = self._staging.group, list(self._classes)
        if "ids" in self._columns:
            check_unique(schema.read(self._columns["ids"].array))
        if "codes" in self._columns:
            if "classes" in group:
                del group["classes"]
            classes = Column.create(group, "classes", STRING, rows=min(len(names), NAMES_PER_BLOCK))
            classes.append(np.array(names, STRING))
            classes.finish()
        return self._staging.publish(
            n_rows=self.n_rows, dtype=self.dtype, feature_names=self._feature_names,
            response_names=self._response_names, n_missing=self._n_missing, **self._begun,
            has_ids="ids" in self._columns, has_labels="codes" in self._columns,
            has_response="response" in self._columns, n_classes=len(names),
            labels_are_numbers=bool(names) and all(map(_is_plain_number, names)), **facts,
        )  # fmt: skip

    def close(self) -> None:
        """Give up what is not published; the store at the path stays as it was."""
        self._staging.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _begin(self, points, extras) -> None:
        n_features = points.shape[1]
        if n_features == 0:
            raise DataError("points have no features (shape (n, 0)); give at least one")
        names = self._feature_names
        if names is not None and len(names) != n_features:
            raise DataError(f"{len(names)} feature names were given for {n_features} features")
        kind = SparsePoints if sparse.issparse(points) else DensePoints
        group = self._staging.group
        self._points = kind(group, n_features, self.dtype, self._block_rows)
        rows = min(self._points.block_rows, NAMES_PER_BLOCK)
        for name, values in extras.items():
            dtype = STRING if name == "ids" else values.dtype
            shape = values.shape[1:]
            self._columns[name] = Column.create(group, name, dtype, shape, rows=rows)
        self._begun = {
            "n_features": n_features,
            "is_sparse": sparse.issparse(points),
            "block_rows": self._points.block_rows,
        }

    def _compare(self, points, extras) -> None:
        if points.shape[1] != self._begun["n_features"]:
            raise DataError(
                f"row {self.n_rows} has {points.shape[1]} features, the rows before it have "
                f"{self._begun['n_features']}"
            )
        if sparse.issparse(points) != self._begun["is_sparse"]:
            raise DataError(f"row {self.n_rows}: rows must be all dense or all sparse")
        if set(extras) != set(self._columns):
            odd = sorted(set(extras) ^ set(self._columns))[0]
            raise DataError(f"row {self.n_rows}: {odd!r} must be given for all rows or for none")
        width = self._columns["response"].array.shape[1:] if "response" in extras else ()
        if "response" in extras and extras["response"].shape[1:] != width:
            raise DataError(
                f"row {self.n_rows} has {extras['response'].shape[1]} responses, not {width[0]}"
            )

    def _encode(self, labels) -> np.ndarray:
        """Codes of labels, in the order in which the classes first appear."""
        labels = np.asarray(labels)
        if labels.ndim != 1 or labels.dtype.kind == "f" and not (labels == np.round(labels)).all():
            raise DataError(
                f"labels must be (n,) strings or whole numbers, got {labels.dtype} of shape "
                f"{labels.shape}; numbers without classes are responses"
            )
        labels = labels.astype(np.int64) if labels.dtype.kind == "f" else labels
        found, first, codes = np.unique(labels.astype(str), return_index=True, return_inverse=True)
        for at in np.argsort(first):
            self._classes.setdefault(str(found[at]), len(self._classes))
        return np.array([self._classes[name] for name in found.tolist()], np.int32)[codes]

    def _take_over(self) -> None:
        """Start from the rows of the current generation."""
        staging = self._staging
        if staging.before is None:
            raise StoreError(f"{staging.path} does not exist; ingest it without update first")
        old = Dataset(staging.path)
        with writing(staging.path):
            _link_tree(staging.path / staging.before, staging.folder)
        self._staging.group = group = zarr.open_group(str(staging.folder), mode="r+")
        said = old.facts
        self.dtype, self._feature_names = said["dtype"], said["feature_names"]
        self._response_names, self._n_missing = said["response_names"], said["n_missing"]
        self._begun = {key: said[key] for key in ("n_features", "is_sparse", "block_rows")}
        kind = SparsePoints if said["is_sparse"] else DensePoints
        self._points = kind(group, said["n_features"], self.dtype, said["block_rows"])
        self.n_rows = said["n_rows"]
        for name in ("ids", "codes", "response"):
            if name in group:
                self._columns[name] = Column(schema.open_array(staging.folder, name))
        if said["has_labels"]:
            names = schema.as_text(schema.read(schema.member(group, "classes")))
            self._classes = {name: code for code, name in enumerate(names.tolist())}


def _as_response(response) -> np.ndarray:
    values = np.asarray(response)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise DataError(
            f"response must be (n,) or (n, q) numbers, got {values.dtype} {values.shape}"
        )
    return values.astype(np.float64)


def _is_plain_number(name: str) -> bool:
    digits = name.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(name)) == name


def _link_tree(old: pathlib.Path, new: pathlib.Path) -> None:
    """The same generation once more: blocks as hard links, metadata as copies."""
    shutil.rmtree(new)
    shutil.copytree(old, new, copy_function=_link_block)


def _link_block(source, target) -> None:
    if pathlib.Path(source).name == schema.POINTER:  # metadata will change
        shutil.copyfile(source, target)
    else:
        link_or_copy(source, target)
