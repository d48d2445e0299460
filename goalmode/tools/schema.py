"""The JSON schema of a function's arguments, and whether arguments match one.

Covers what signatures can say: str, int, float, bool, None, Any, list, dict with str keys, Literal, unions, defaults
and `Annotated[T, "description"]`. The validator knows exactly this subset and coerces nothing: `"5"` is no integer.
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from goalmode.domain.text import one_line
from goalmode.errors import BadInput

MAX_PROBLEMS = 6
"""Problems told at once: enough to correct a call, few enough to read."""

_SUPPORTED = "one of str, int, float, bool, None, Any, list[…], dict[str, …], Literal[…], or a union of them"
_PLAIN: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}
_WORDS: Mapping[str, str] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a list",
    "object": "an object",
}


def schema_of(function: Callable[..., Any], injected: type | None = None) -> dict[str, Any]:
    """The schema of what `function` takes by name.

    Args:
        injected: a first parameter annotated with this type is the host's, not the model's, and is left out.

    Raises:
        BadInput: a parameter has no annotation, or one outside the subset, or cannot be given by name.
    """
    name = getattr(function, "__name__", "tool")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadInput(
            f"tool {name}", str(error), "every annotation must name something importable"
        ) from error
    properties: dict[str, object] = {}
    required: list[str] = []
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        where = f"tool {name}, argument {parameter.name}"
        if position == 0 and injected is not None and hints.get(parameter.name) is injected:
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadInput(where, str(parameter), "arguments are given by name; * and / are not supported")
        if parameter.name not in hints:
            raise BadInput(where, str(parameter), f"annotate it with {_SUPPORTED}")
        schema = _schema(hints[parameter.name], where)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, str | int | float):
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def validate(schema: Mapping[str, object], arguments: Mapping[str, object]) -> list[str]:
    """What is wrong with `arguments`, each naming argument, value and what would be right; empty if nothing is."""
    return list(islice(_problems(schema, arguments, ""), MAX_PROBLEMS))


def _schema(hint: Any, where: str) -> dict[str, object]:
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Annotated:
        described = _schema(args[0], where)
        text = next((extra for extra in args[1:] if isinstance(extra, str)), None)
        return described if text is None else {**described, "description": text}
    if origin is Literal:
        words = all(isinstance(arg, str) for arg in args)
        return {"type": "string", "enum": list(args)} if words else {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(arg, where) for arg in args]}
    if origin is list:
        return {"type": "array", "items": _schema(args[0], where)}
    if origin is dict and args[0] is str:
        return {"type": "object", "additionalProperties": _schema(args[1], where)}
    raise BadInput(where, str(hint), f"annotate it with {_SUPPORTED}")


def _problems(schema: Mapping[str, Any], value: object, path: str) -> Iterator[str]:
    if "anyOf" in schema:
        yield from _any_of(schema, value, path)
    elif "enum" in schema:
        if not any(type(value) is type(choice) and value == choice for choice in schema["enum"]):
            yield _wrong(schema, value, path)
    elif not _has_type(value, schema.get("type")):
        yield _wrong(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path)
    elif isinstance(value, list) and "items" in schema:
        for position, item in enumerate(value):
            yield from _problems(schema["items"], item, f"{path}[{position}]")


def _any_of(schema: Mapping[str, Any], value: object, path: str) -> Iterator[str]:
    branches: Sequence[Mapping[str, Any]] = schema["anyOf"]
    if any(next(_problems(branch, value, path), None) is None for branch in branches):
        return
    near = [branch for branch in branches if "type" in branch and _has_type(value, branch["type"])]
    if len(near) == 1:
        yield from _problems(near[0], value, path)
    else:
        yield _wrong(schema, value, path)


def _object(schema: Mapping[str, Any], value: Mapping[str, object], path: str) -> Iterator[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{_join(path, name)}: missing, must be {_words(properties.get(name, {}))}"
    for name, item in value.items():
        if name in properties:
            yield from _problems(properties[name], item, _join(path, name))
        elif others is False:
            known = ", ".join(properties) or "none"
            yield f"{_join(path, one_line(name[:81], 80))}: unknown, the arguments are: {known}"
        elif isinstance(others, Mapping):
            yield from _problems(others, item, _join(path, one_line(name[:81], 80)))


def _has_type(value: object, name: object) -> bool:
    match name:
        case None:
            return True
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return False


def _wrong(schema: Mapping[str, Any], value: object, path: str) -> str:
    shown = json.dumps(value, ensure_ascii=False, default=repr)
    return f"{path or 'arguments'}: {one_line(shown[:81], 80)} is not valid, must be {_words(schema)}"


def _words(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_words(branch) for branch in schema["anyOf"])
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(choice, ensure_ascii=False) for choice in schema["enum"])
    if schema.get("type") == "array" and schema.get("items"):
        return f"a list, each item {_words(schema['items'])}"
    return _WORDS.get(str(schema.get("type")), "any value")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
