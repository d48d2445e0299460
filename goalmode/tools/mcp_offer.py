"""The tools that a server lists, as a provider takes them: names, schemas and sizes within what all of them accept.

A server's schema is not trusted to be one. The server itself checks the arguments of its tools; here they are only
made sendable, so that no tool of anybody's makes a provider refuse a request.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from goalmode.domain.calls import Effect
from goalmode.domain.messages import ToolSpec
from goalmode.domain.outside import Server
from goalmode.domain.text import sendable

MAX_TOOLS = 64
"""Of one server on offer. Providers take 128 at most in all, and a model that is told of hundreds picks badly."""

MAX_TOGETHER = 100
"""Of all servers: beside the built-in ones they stay below the 128 that providers take."""

MAX_DESCRIPTION = 1_024
"""Characters: what the strictest provider takes."""

MAX_SCHEMA = 16_000
"""Characters of a schema as JSON. A larger one is left out, and the arguments are whatever the description says."""

MAX_NAME = 64
MAX_DEPTH = 12
"""Nesting of a schema, references followed."""

MAX_SUBSCHEMAS = 1_000
"""Of one tool, references followed: a schema that refers to itself in several places has no end."""

_NOT_WIRE = re.compile(r"[^a-zA-Z0-9_-]")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "array", "object"})
_KEPT = (
    *("title", "description", "default", "enum", "const", "format", "pattern", "minimum", "maximum"),
    *(
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
    ),
)
"""Keywords whose value is handed on as it is, if it is of the right kind."""

_OPEN: Mapping[str, Any] = {"type": "object", "properties": {}}


def wire_name(server: Server, name: str, taken: Mapping[str, object]) -> str:
    """`mcp__SERVER__TOOL`; a name that has to be changed or cut, or is taken, ends in a piece of its hash."""
    whole = f"{server.prefix}{_NOT_WIRE.sub('_', name)}"
    if whole == f"{server.prefix}{name}" and len(whole) <= MAX_NAME and whole not in taken:
        return whole
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{whole[: MAX_NAME - len(mark) - 1]}_{mark}"


def effect_of(server: Server, annotations: Any) -> Effect:
    """What a tool does, as far as its server's hints are believed.

    WRITE, unless the server says that the tool only reads and not that it destroys. A hint that lies gains little: a
    READ passes the same gate; its calls may run beside other reads, and its result is synced a commit later.
    `hints = false` believes none.
    """
    if annotations is None or not server.hints:
        return Effect.WRITE
    reads = annotations.read_only_hint is True and annotations.destructive_hint is not True
    return Effect.READ if reads else Effect.WRITE


def spec_of(name: str, description: str | None, schema: object) -> ToolSpec:
    """What a provider is told of a tool."""
    told = sendable(description or "").strip()
    told = told if len(told) <= MAX_DESCRIPTION else f"{told[: MAX_DESCRIPTION - 1]}…"
    return ToolSpec(name, told, schema_for_wire(schema))


def schema_for_wire(schema: object) -> dict[str, Any]:
    """A schema of an object that every provider takes: references written out, what is not valid left out.

    A schema that is none, or too large, becomes one of any object.
    """
    if not isinstance(schema, Mapping):
        return dict(_OPEN)
    made = _Rewritten(schema).top()
    try:
        size = len(json.dumps(made, allow_nan=False))
    except (ValueError, RecursionError):
        return dict(_OPEN)
    return made if size <= MAX_SCHEMA else dict(_OPEN)


class _Rewritten:
    """A document's schemas, written anew. `left`: subschemas that may still be written; then they say nothing."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._left = root, MAX_SUBSCHEMAS

    def top(self) -> dict[str, Any]:
        """`anyOf` and its like may not stand at the top: every provider wants `type: object` there."""
        made: dict[str, Any] = {"type": "object", "properties": {}, **self._members(self._root, 0)}
        if self._root.get("additionalProperties") is False:
            made["additionalProperties"] = False
        return made

    def _schema(self, given: object, depth: int) -> dict[str, Any]:
        self._left -= 1
        if not isinstance(given, Mapping) or depth > MAX_DEPTH or self._left < 0:
            return {}
        schema = _followed(given, self._root)
        if schema is None:
            return _texts(given)
        made = {key: _clean(schema[key]) for key in _KEPT if key in schema and _fits(key, schema[key])}
        kind = _type(schema.get("type"))
        if kind is not None:
            made["type"] = kind
        for key in ("anyOf", "oneOf", "allOf"):
            branches = schema.get(key)
            if isinstance(branches, list) and branches:
                made["anyOf" if key == "oneOf" else key] = [self._schema(one, depth + 1) for one in branches]
        if isinstance(schema.get("items"), Mapping):
            made["items"] = self._schema(schema["items"], depth + 1)
        elif kind == "array":
            made["items"] = {}  # Some providers refuse an array that does not say of what.
        others = schema.get("additionalProperties")
        if isinstance(others, bool):
            made["additionalProperties"] = others
        elif isinstance(others, Mapping):
            made["additionalProperties"] = self._schema(others, depth + 1)
        return made | self._members(schema, depth)

    def _members(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        given = schema.get("properties")
        if not isinstance(given, Mapping):
            return {}
        properties = {
            name: self._schema(one, depth + 1)
            for name, one in given.items()
            if isinstance(name, str) and _PROPERTY.fullmatch(name)
        }
        required = _required(schema, properties)
        return {"properties": properties, **({"required": required} if required else {})}


def _required(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    given = schema.get("required")
    if not isinstance(given, list):
        return []
    return list(dict.fromkeys(name for name in given if isinstance(name, str) and name in properties))


def _followed(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema itself, or what its `$ref` within the document names beside its own words; None: it names nothing."""
    seen = 0
    while "$ref" in schema:
        target: Any = root
        reference = schema["$ref"]
        if not isinstance(reference, str) or not reference.startswith("#/") or seen > MAX_DEPTH:
            return None
        for part in reference[2:].split("/"):
            target = (
                target.get(part.replace("~1", "/").replace("~0", "~"))
                if isinstance(target, Mapping)
                else None
            )
        if not isinstance(target, Mapping):
            return None
        schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        seen += 1
    return schema


def _type(given: object) -> str | list[str] | None:
    if isinstance(given, str):
        return given if given in _TYPES else None
    if isinstance(given, list):
        kinds = [kind for kind in dict.fromkeys(map(str, given)) if kind in _TYPES]
        return kinds or None
    return None


def _fits(key: str, value: object) -> bool:
    match key:
        case "title" | "description" | "format":
            return isinstance(value, str)
        case "pattern":
            return isinstance(value, str) and _compiles(value)
        case "enum":
            return isinstance(value, list) and bool(value)
        case "minLength" | "maxLength" | "minItems" | "maxItems":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "uniqueItems":
            return isinstance(value, bool)
        case "default" | "const":
            return True
        case _:
            return isinstance(value, int | float) and not isinstance(value, bool)


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _texts(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: sendable(schema[key]) for key in ("title", "description") if isinstance(schema.get(key), str)
    }


def _clean(value: Any) -> Any:
    match value:
        case str():
            return sendable(value)
        case list():
            return [_clean(one) for one in value]
        case dict():
            return {sendable(str(key)): _clean(one) for key, one in value.items()}
        case _:
            return value
