"""What job and cluster files share: checked keys, and paths that count from the right folder."""

import difflib
import os
import pathlib
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError


class Said(str):
    """Text given on the command line: a path in it counts from the current folder."""


class Keys(BaseModel):
    """A mapping whose keys are all known; types are taken as written (``"5"`` is no number)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_key(cls, given: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        unknown = [key for key in given if key not in known] if isinstance(given, dict) else []
        if unknown:
            raise PydanticCustomError("unknown_key", _unknown(str(unknown[0]), known))
        return given


def _unknown(key: str, known: list[str]) -> Any:
    nearest = difflib.get_close_matches(key, known, n=1)
    if nearest:
        return f"unknown key {key!r}; the nearest known key is {nearest[0]!r}"
    return f"unknown key {key!r}; known keys are {', '.join(known)}"


def _locate(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str) or not value:
        return value
    folder = (info.context or {}).get("folder", pathlib.Path())
    return pathlib.Path(os.path.abspath(value if isinstance(value, Said) else folder / value))


Place = Annotated[pathlib.Path, BeforeValidator(_locate)]
"""A path. In a file it counts from the file's folder, on the command line from the current one."""
