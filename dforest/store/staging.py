"""A store being written: whole or absent, whatever happens on the way."""

import errno
import hashlib
import json
import os
import pathlib
import re
import shutil
import uuid

import zarr

from dforest.errors import StoreError
from dforest.store import schema
from dforest.store.disk import writing
from dforest.store.lock import Lock

GENERATION = re.compile(r"v([1-9][0-9]*)")


class Staging:
    """Write the next generation of the store at ``path`` in a folder beside it, then publish.

    Holds the path's lock from the start. What killed writers left behind is removed first.

    Parameters
    ----------
    path : path-like
        Where the store shall be. What is there already must be absent, an empty folder, or a
        store of the same format.
    format : str
    resume : str, optional
        Fingerprint of the work: if a killed writer of the same work left its staging folder, it
        is taken up (``self.resumed`` is then True) instead of removed.

    Attributes
    ----------
    group : zarr.Group
        Where to create the arrays.
    folder : pathlib.Path
        The group's folder.
    """

    def __init__(self, path, format: str, *, resume: str | None = None):
        self.path = pathlib.Path(path).resolve()
        self.format = format
        self.lock = Lock(self.path).acquire()
        try:
            self.before = _current(self.path, format)  # the generation that is replaced, or None
            with writing(self.path):
                self._prepare(resume)
        except BaseException:
            self.lock.release()
            raise

    def _prepare(self, resume: str | None) -> None:
        number = 1 + int(self.before[1:]) if self.before else 1
        work = uuid.uuid4().hex if resume is None else resume
        mark = hashlib.sha256(work.encode()).hexdigest()[:12]
        self.root = self.path.with_name(f"{self._prefix}{mark}")
        self._remove_leftovers()
        self.folder = self.root / f"v{number}"
        self.resumed = (self.folder / schema.POINTER).is_file()
        if self.resumed:
            self.group = zarr.open_group(str(self.folder), mode="r+")
        else:
            shutil.rmtree(self.root, ignore_errors=True)
            self.root.mkdir(parents=True)
            self.group = schema.create_group(self.folder, self.format)

    @property
    def _prefix(self) -> str:
        return f".{self.path.name}.staging-"

    def _remove_leftovers(self) -> None:
        for entry in self.path.parent.iterdir():
            if entry.name.startswith(self._prefix) and entry != self.root:
                shutil.rmtree(entry, ignore_errors=True)
        for name in _generations(self.path):
            if self.before and int(name[1:]) > int(self.before[1:]):  # never became current
                shutil.rmtree(self.path / name, ignore_errors=True)

    def publish(self, **facts) -> pathlib.Path:
        """Make the staged arrays the store at ``path``, in one atomic step; return the path.

        The generation that was current stays on disk until the next publish, for those who are
        reading it now.
        """
        with writing(self.path):
            schema.set_facts(self.group, facts)
            self._publish()
        self.lock.release()
        return self.path

    def _publish(self) -> None:
        for partial in self.folder.rglob("*.partial"):  # of killed tasks
            partial.unlink()
        pointer = {
            "format": self.format,
            "version": schema.VERSION,
            "current": self.folder.name,
            "metadata": schema.metadata_digest(self.folder),
            "fingerprint": _content_digest(self.folder),
        }
        text = {"zarr_format": 3, "node_type": "group", "attributes": {"dforest": pointer}}
        file = self.root / schema.POINTER
        file.write_text(json.dumps(text, indent=2))
        _flush_tree(self.root)
        if self.before is None:
            os.rename(self.root, self.path)
        else:
            os.rename(self.folder, self.path / self.folder.name)
            _flush(self.path)
            os.replace(file, self.path / schema.POINTER)
            self.root.rmdir()
            for name in _generations(self.path):
                if name not in (self.before, self.folder.name):
                    shutil.rmtree(self.path / name, ignore_errors=True)
            _flush(self.path)
        _flush(self.path.parent)

    def abandon(self) -> None:
        """Remove what was staged; the store at ``path`` stays as it was."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.lock.release()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.lock.is_held:
            self.abandon()


def _current(path: pathlib.Path, format: str) -> str | None:
    """Generation that a new one would replace; refuses to replace what is not such a store."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return None
    pointer = schema.read_pointer(path)
    if pointer["format"] != format:
        raise StoreError(
            f"{path} holds a {pointer['format']} and is not overwritten by a {format}; "
            "remove it or choose another path"
        )
    return str(pointer["current"])


def _generations(path: pathlib.Path) -> list[str]:
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    return [name for name in names if GENERATION.fullmatch(name)]


def _content_digest(folder: pathlib.Path) -> str:
    """Digest of every block's name, size and last bytes, which are the block's own checksum."""
    digest = hashlib.sha256(schema.metadata_digest(folder).encode())
    blocks = (file for file in folder.rglob("*") if file.is_file() and file.name != schema.POINTER)
    for file in sorted(blocks):
        with open(file, "rb") as stored:
            size = stored.seek(0, os.SEEK_END)
            stored.seek(max(0, size - 4))
            digest.update(f"{file.relative_to(folder)} {size} ".encode() + stored.read())
    return digest.hexdigest()


def _flush_tree(folder: pathlib.Path) -> None:
    for place, _, files in os.walk(folder, topdown=False):
        for file in files:
            _flush(os.path.join(place, file))
        _flush(place)


def _flush(path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems cannot flush a folder
            raise
    finally:
        os.close(handle)
