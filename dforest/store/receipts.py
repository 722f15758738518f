"""Receipts: the finished parts of a pass, so that a killed run takes up where it stopped."""

import dataclasses
import json
import os
import pathlib
import uuid
import zlib

import numpy as np

from dforest.errors import SpecError
from dforest.store.disk import writing
from dforest.store.schema import NAME

SEAL = "receipt"  # the member of the .npz that says whose part it is and what it must hold


@dataclasses.dataclass(frozen=True)
class Receipts:
    """Parts kept in a folder, one ``.npz`` (without pickle) for each key.

    Holds paths only, so it travels to workers. A part that is damaged, cut short, or was written
    for other work counts as absent: it is then simply done again.

    Parameters
    ----------
    folder : path-like
        Created when the first part is written.
    fingerprint : str
        Says which work the parts belong to: inputs, parameters, versions.

    Examples
    --------
    >>> import tempfile
    >>> kept = Receipts(tempfile.mkdtemp(), "seed 0")
    >>> kept.write("tree-000007", {"gain": np.array([0.5])})
    >>> kept.read("tree-000007")
    {'gain': array([0.5])}
    >>> Receipts(kept.folder, "seed 1").read("tree-000007") is None
    True
    """

    folder: str | os.PathLike
    fingerprint: str

    def read(self, key: str) -> dict[str, np.ndarray] | None:
        """Return the part that was written under ``key``, or None."""
        file = self._file(key)
        try:
            with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            seal = json.loads(arrays.pop(SEAL).tobytes())
        except Exception:  # a flipped bit in a zip raises anything; each means "do it again"
            return None
        wanted = {name: _checksum(array) for name, array in arrays.items()}
        return arrays if seal == {"work": self.fingerprint, "arrays": wanted} else None

    def write(self, key: str, part: dict[str, np.ndarray]) -> None:
        """Keep ``part`` under ``key``: on disk whole, or not at all."""
        arrays = {name: np.asarray(array) for name, array in part.items()}
        for name, array in arrays.items():
            if name == SEAL or array.dtype.hasobject or array.dtype.kind == "T":
                raise SpecError(
                    f"part {key!r}: {name!r} ({array.dtype}) cannot be kept in a receipt"
                )
        checks = {name: _checksum(array) for name, array in arrays.items()}
        seal = json.dumps({"work": self.fingerprint, "arrays": checks}).encode()
        file = self._file(key)
        partial = file.with_name(f"{file.name}.{uuid.uuid4().hex}.partial")
        try:
            with writing(file):
                file.parent.mkdir(parents=True, exist_ok=True)
                _save(partial, arrays, seal)
                os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)

    def keys(self) -> list[str]:
        """Keys under which something is kept, sorted; `read` decides whether it still counts."""
        return sorted(file.stem for file in pathlib.Path(self.folder).glob("*.npz"))

    def _file(self, key: str) -> pathlib.Path:
        if not NAME.fullmatch(key):
            raise SpecError(f"key {key!r} may hold letters, digits, '_', '-' and '.' only")
        return pathlib.Path(self.folder) / f"{key}.npz"


def _checksum(array: np.ndarray) -> list:
    kind = array.dtype.str, list(array.shape)
    return [
        *kind,
        zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data if array.size else b""),
    ]


def _save(file, arrays: dict[str, np.ndarray], seal: bytes) -> None:
    with open(file, "wb") as stream:
        np.savez(stream, allow_pickle=False, **{SEAL: np.frombuffer(seal, np.uint8)}, **arrays)
        stream.flush()
        os.fsync(stream.fileno())
