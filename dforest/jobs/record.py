"""``run.json``: what was asked, what is done, how long it took, and what came of it."""

import json
import os
import pathlib
import platform
import time
from collections.abc import Iterator
from typing import Any

from dforest.errors import SpecError
from dforest.run.client import package_versions
from dforest.run.events import Event
from dforest.store.disk import writing

FILE = "run.json"
WORKING = "working"  # folder of what only a half-finished run needs
UPDATE = 10.0  # seconds after which a pass that ended is written down without waiting for its step
DECIDING = ("dforest", "numpy", "scipy", "numba")  # versions that the bits of a result depend on
REPORTED = (*DECIDING, "zarr", "dask", "distributed", "scikit-learn")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that do the work."""
    return {"python": platform.python_version(), **package_versions(REPORTED)}


def stamp(path: pathlib.Path) -> str:
    """Say which content a file or folder had: number of files, bytes, the newest change.

    Cheap, as no content is read; a copy with new times counts as other content.
    """
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    seen = [file.stat() for file in files]
    newest = max((one.st_mtime_ns for one in seen), default=0)
    return f"{len(seen)} files, {sum(one.st_size for one in seen)} bytes, changed {newest}"


class Record:
    """The record of one run, on disk after every step.

    Attributes
    ----------
    step : str or None
        The one that is being done.
    facts : dict
        What ``run.json`` holds: request, status (running, stopped, finished), versions, steps
        (name -> results), passes (timings and counts), results.
    """

    def __init__(self, folder: pathlib.Path, request: dict[str, Any]):
        self.folder, self._start = folder, time.monotonic()  # seconds are counted from there
        self.step: str | None = None
        self.facts: dict[str, Any] = {
            "format": "dforest run",
            "version": 1,
            "status": "running",
            "request": request,
            "versions": versions(),
            "started": _now(),
            "seconds": 0.0,
            "steps": {},
            "passes": [],
        }

    @classmethod
    def open(cls, folder: pathlib.Path, request: dict[str, Any], *, resume: bool) -> "Record":
        """Begin a run in ``folder``, or take up the one that is there.

        Raises
        ------
        SpecError
            The folder holds another request's run, a half-finished run without ``resume``, or
            files that are no run at all. Nothing in it was touched.
        """
        record, found = cls(folder, json.loads(json.dumps(request))), _read(folder)
        if found is None:
            return record
        differs = next(_differences(found["request"], record.facts["request"]), None)
        if differs:
            raise SpecError(
                f"output: {folder} holds the {found['status']} run of another request "
                f"({differs}); give another output, or remove the folder"
            )
        n_done = len(found["steps"])
        if not n_done and not (folder / WORKING).exists():
            return record  # it never began to work
        if found["status"] != "finished" and not resume:
            raise SpecError(
                f"output: {folder} holds a half-finished run of this request ({n_done} steps "
                "done); continue it with --resume, or remove the folder"
            )
        record.facts = found | {"versions": record.facts["versions"]}
        return record

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.facts["status"] == "finished"

    def listen(self, event: Event) -> None:
        """Keep the timing and the counts of every pass that ended."""
        if event.kind == "end":
            rate = round(event.bytes / event.seconds) if event.seconds > 0 else 0
            counts = {"done": event.done, "kept": event.kept, "total": event.total}
            passed = {"step": self.step, "name": event.name, "seconds": round(event.seconds, 3)}
            moved = {"bytes": event.bytes, "bytes_per_second": rate}
            self.facts["passes"].append(passed | counts | moved)
            if time.monotonic() - self._start > UPDATE:
                self.write(self.facts["status"])

    def finish_step(self, name: str, results: dict[str, Any]) -> None:
        """Note that a step is done; it will not be done again."""
        self.facts["steps"][name] = results
        self.write("running")

    def write(self, status: str, **more: Any) -> None:
        """Bring ``run.json`` up to date, whole or not at all."""
        self.facts["seconds"] = round(self.facts["seconds"] + time.monotonic() - self._start, 3)
        self._start = time.monotonic()
        self.facts |= {"status": status, "updated": _now(), **more}
        draft = self.folder / f".{FILE}.partial"
        with writing(self.folder / FILE):
            self.folder.mkdir(parents=True, exist_ok=True)
            with open(draft, "w", encoding="utf-8") as file:
                json.dump(self.facts, file, indent=2)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.folder / FILE)


def read_record(folder: pathlib.Path) -> dict[str, Any]:
    """What ``run.json`` in ``folder`` holds."""
    try:
        facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
        known = facts["format"] == "dforest run" and facts["version"] == 1
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise SpecError(f"output: {folder} holds files, but no run of dforest; give another output")
    return facts


def _read(folder: pathlib.Path) -> dict[str, Any] | None:
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"output: {folder} is a file; give a folder")
    is_empty = not folder.exists() or all(file.suffix == ".partial" for file in folder.iterdir())
    return None if is_empty else read_record(folder)


def _differences(there: Any, here: Any, path: str = "") -> Iterator[str]:
    if isinstance(there, dict) and isinstance(here, dict):
        for key in [*here, *(key for key in there if key not in here)]:
            yield from _differences(there.get(key), here.get(key), f"{path}.{key}" if path else key)
    elif there != here:
        yield f"{path}: {json.dumps(there)} there, {json.dumps(here)} here"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
