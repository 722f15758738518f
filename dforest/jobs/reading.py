"""YAML in, checked models out; every complaint is one line that names the file and the key."""

import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from dforest.errors import SpecError
from dforest.jobs.keys import Keys, Said

Model = TypeVar("Model", bound=Keys)


class _Loader(yaml.SafeLoader):
    """Safe YAML in which a key given twice is an error and 1e-3 is a number (as in YAML 1.2)."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise SpecError(f"line {line}: key {key!r} is given twice; keep one")
            seen.add(key)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


def read_yaml(path: str | os.PathLike) -> dict[str, Any]:
    """Read a file that holds one mapping.

    Raises
    ------
    SpecError
        It is missing, no YAML, no mapping, or gives a key twice; the message names file and line.
    """
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        raise SpecError(f"{path}: cannot be read: {why}") from None
    given = _parse(text, path)
    if not isinstance(given, dict):
        raise SpecError(f"{path}: holds {_kind_of(given)}, not keys and values (key: value)")
    return given


def _parse(text: str, where: str | os.PathLike) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506  (a SafeLoader)
    except SpecError as error:
        raise SpecError(f"{where}: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise SpecError(f"{where}: {line}no YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise SpecError(f"{where}: no YAML: {str(error).splitlines()[0]}") from None


def override(given: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return ``given`` with settings ``a.b=c`` laid over it; c is read as YAML.

    >>> override({"forest": {"n_estimators": 100}}, ["forest.n_estimators=200", "seed=1"])
    {'forest': {'n_estimators': 200}, 'seed': 1}
    """
    for setting in settings:
        dotted, equals, text = setting.partition("=")
        if not equals or not all(dotted.split(".")):
            raise SpecError(f"--set {setting}: write key=value, as in forest.n_estimators=200")
        value = _parse(text, f"--set {setting}")
        value = Said(value) if isinstance(value, str) else value
        given = _put(given, dotted.split("."), value, setting)
    return given


def _put(given: dict[str, Any], path: list[str], value: Any, setting: str) -> dict[str, Any]:
    first, *rest = path
    if rest:
        below = given.get(first)
        if not isinstance(below, dict | None):
            raise SpecError(f"--set {setting}: {first!r} is {_kind_of(below)} and has no keys")
        value = _put(below or {}, rest, value, setting)
    return {**given, first: value}


def check(
    model: type[Model],
    given: dict[str, Any],
    where: str | os.PathLike,
    settings: Sequence[str] = (),
) -> Model:
    """Turn keys and values into a model, paths counting from the file's folder.

    Raises
    ------
    SpecError
        Names the file (or the setting), the key, what is wrong, and how many more faults there are.
    """
    try:
        return model.model_validate(given, context={"folder": pathlib.Path(where).parent})
    except ValidationError as error:
        faults = error.errors(include_url=False)
        first, more = faults[0], len({_key(given, fault) for fault in faults}) - 1
        key = _key(given, first)
        said = [text for text in settings if f"{key}.".startswith(f"{text.partition('=')[0]}.")]
        place = f"--set {said[-1]}" if said else where
        tail = f" (and {more} more)" if more else ""
        raise SpecError(f"{place}: {key + ': ' if key else ''}{_why(first)}{tail}") from None


def _key(given: Any, fault: Any) -> str:
    """Keys as the user wrote them: pydantic's names for the branches of a union are left out."""
    keys: list[str] = []
    for part in fault["loc"]:
        if (
            isinstance(given, dict)
            and part in given
            or isinstance(given, list)
            and isinstance(part, int)
            and part < len(given)
        ):
            given = given[part]
        elif fault["type"] != "missing" or part != fault["loc"][-1]:
            continue
        keys.append(str(part))
    return ".".join(keys)


def _why(fault: Any) -> str:
    if fault["type"] == "missing":
        return "is missing; it has no default"
    if fault["type"] in {"model_type", "dict_type", "model_attributes_type"}:
        return f"must be keys and values, got {fault['input']!r}"
    message = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if fault["type"] in {"unknown_key", "value_error"}:
        return message
    return f"{message}, got {fault['input']!r}"


def _kind_of(value: Any) -> str:
    names = {dict: "keys and values", list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), repr(value))
