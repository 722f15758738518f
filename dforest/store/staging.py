"""A store being written: whole or absent, whatever happens on the way."""

import errno
import hashlib
import os
import pathlib
import re
import uuid

import zarr

from dforest.errors import StoreError
from dforest.store import schema
from dforest.store.disk import remove_tree, writing
from dforest.store.lock import Lock

GENERATION = re.compile(r"v([1-9][0-9]*)")
BEGUN = "begun"


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
        Fingerprint of the work: if a killed writer of the same work left its staging folder and
        had called `begun`, it is taken up (``self.resumed`` is then True) instead of removed.

    Attributes
    ----------
    group : zarr.Group
        Where to create the arrays.
    folder : pathlib.Path
        The group's folder.
    notes : pathlib.Path
        Folder for what only writers need; it is removed once the store is published.
    """

    def __init__(self, path, format: str, *, resume: str | None = None):
        self.path = pathlib.Path(path).resolve()
        self.format = format
        work = uuid.uuid4().hex if resume is None else resume
        mark = hashlib.sha256(work.encode()).hexdigest()[:12]
        self.root = self.path.with_name(f"{self._prefix}{mark}")
        self.notes = self.root.with_name(f"{self.root.name}.notes")
        self.lock = Lock(self.path).acquire()
        try:
            with writing(self.path):
                self._prepare()
        except BaseException:
            self.close(keep=(self.notes / BEGUN).exists())
            raise

    def _prepare(self) -> None:
        self._pointer = _current(self.path, self.format)
        self.before = self._pointer.get("current")  # the generation that is replaced, or None
        self.folder = self.root / f"v{1 + int(self.before[1:]) if self.before else 1}"
        self.resumed = self._is_as_begun()
        self._remove_leftovers()
        if self.resumed:
            self.group = zarr.open_group(str(self.folder), mode="r+")
            return
        for folder in (self.root, self.notes):
            remove_tree(folder)
            folder.mkdir(parents=True)
        self.group = schema.create_group(self.folder, self.format)

    def begun(self) -> None:
        """Say that all arrays have been created: from now on the work can be resumed."""
        with writing(self.path):
            (self.notes / BEGUN).write_text(schema.metadata_digest(self.folder))

    def _is_as_begun(self) -> bool:
        try:
            said = (self.notes / BEGUN).read_text()
            return said == schema.metadata_digest(self.folder)
        except (OSError, ValueError):
            return False

    @property
    def _prefix(self) -> str:
        return f".{self.path.name}.staging-"

    def _remove_leftovers(self) -> None:
        for entry in self.path.parent.iterdir():
            if entry.name.startswith(self._prefix) and entry not in (self.root, self.notes):
                remove_tree(entry)
        for name in _generations(self.path):
            if self.before and int(name[1:]) > int(self.before[1:]):  # never became current
                remove_tree(self.path / name)

    def publish(self, **facts) -> pathlib.Path:
        """Make the staged arrays the store at ``path``, in one atomic step; return the path.

        The generation that was current stays on disk until the next publish, for those who are
        reading it now.
        """
        with writing(self.path):
            schema.set_facts(self.group, facts)
            self.begun()  # with these facts
            self._publish()
        remove_tree(self.notes)
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
            "fingerprint": schema.content_digest(self.folder),
        }
        if self.before:
            pointer["kept"] = {self.before: self._pointer["metadata"]}
        file = self.root / schema.POINTER
        schema.write_pointer(file, pointer)
        _flush_tree(self.root)
        if self.before is None:
            os.rename(self.root, self.path)
        else:
            os.rename(self.folder, self.path / self.folder.name)
            _flush(self.path)
            os.replace(file, self.path / schema.POINTER)
            remove_tree(self.root)
            for name in _generations(self.path):
                if name not in (self.before, self.folder.name):
                    remove_tree(self.path / name)
            _flush(self.path)
        _flush(self.path.parent)

    def close(self, *, keep: bool = False) -> None:
        """Give up what is not published; ``keep=True`` leaves it to a writer that resumes.

        The store at ``path`` stays as it was. A second call does nothing.
        """
        if not self.lock.is_held:
            return
        if not keep:
            for folder in (self.root, self.notes):
                remove_tree(folder)
        self.lock.release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _current(path: pathlib.Path, format: str) -> dict:
    """Pointer of the store that is replaced, {} for none; refuses what is not such a store."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return {}
    pointer = schema.read_pointer(path)
    if pointer["format"] != format:
        raise StoreError(
            f"{path} holds a {pointer['format']} and is not overwritten by a {format}; "
            "remove it or choose another path"
        )
    return pointer


def _generations(path: pathlib.Path) -> list[str]:
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else []
    return [name for name in names if GENERATION.fullmatch(name)]


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
