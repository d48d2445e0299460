"""What an MCP server answered, as text for the model: what is no text becomes a reference, never base64."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from goalmode.domain.text import one_line
from goalmode.tools.human import SESSION_ID, STATUS
from goalmode.tools.registry import ToolOutput

SHORTEST_BLOB = 512
"""Characters of a text in a structured answer that is looked at: longer ones without a space are no words."""

_NAME, _URI, _DESCRIPTION = 200, 500, 500
_BLOB = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def output_of(result: CallToolResult, *, hands_over: bool) -> ToolOutput:
    """The result of a call.

    Args:
        hands_over: the tool has declared that it may hand over to a person; its structured answer then stands alone
            where it says so.
    """
    structured = result.structured_content
    if hands_over and isinstance(structured, Mapping) and structured.get("status") == STATUS:
        return ToolOutput(_json(structured), ok=not result.is_error)
    parts = [_part(content) for content in result.content]
    if structured is not None and not _said(structured, result, parts):
        parts.append(_json(_without_blobs(structured)))
    text = "\n\n".join(part for part in parts if part)
    return ToolOutput(text or "(no result)", ok=not result.is_error)


def hands_over(output_schema: object) -> bool:
    """Whether a tool declares, in the schema of its output, that it may answer with a hand-over to a person.

    A tool that does not is never listened to: what a page or a file says, a tool that fetches it would repeat.
    """
    if not isinstance(output_schema, Mapping):
        return False
    forms = [output_schema, *(output_schema.get("anyOf") or ()), *(output_schema.get("oneOf") or ())]
    names = [form.get("properties") for form in forms if isinstance(form, Mapping)]
    return any(
        isinstance(known, Mapping) and "status" in known and any(name in known for name in SESSION_ID)
        for known in names
    )


def _part(content: object) -> str:
    match content:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=kind):
            return f"[image: {one_line(kind, _NAME)}, {_measured(data)}; it is not shown]"
        case AudioContent(data=data, mime_type=kind):
            return f"[audio: {one_line(kind, _NAME)}, {_measured(data)}; it is not played]"
        case ResourceLink(uri=uri, name=name, description=description, mime_type=kind, size=size):
            told = [one_line(name, _NAME), one_line(uri, _URI)]
            told += [one_line(kind, _NAME)] if kind else []
            told += [f"{size} bytes"] if size is not None else []
            told += [one_line(description, _DESCRIPTION)] if description else []
            return f"[resource: {', '.join(told)}]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[resource: {one_line(uri, _URI)}]\n{text}"
        case EmbeddedResource(resource=resource):
            kind = resource.mime_type or "of unknown type"
            measured = _measured(getattr(resource, "blob", ""))
            return f"[resource: {one_line(resource.uri, _URI)}, {one_line(kind, _NAME)}, {measured}; it is not shown]"
        case _:
            return f"[content of a kind that is not known here: {type(content).__name__}]"


def _measured(data: str) -> str:
    """Size and hash of what base64 stands for: enough to tell whether two are the same."""
    try:
        raw = base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return f"{len(data)} characters that are no base64"
    return f"{len(raw)} bytes, sha256 {hashlib.sha256(raw).hexdigest()[:16]}"


def _without_blobs(value: Any) -> Any:
    """The value with references in the places of texts that are base64: so servers hand on pictures and files."""
    match value:
        case str() if len(value) >= SHORTEST_BLOB and _BLOB.fullmatch(value):
            return f"[{_measured(value)}; not shown]"
        case list():
            return [_without_blobs(one) for one in value]
        case Mapping():
            return {key: _without_blobs(one) for key, one in value.items()}
        case _:
            return value


def _said(structured: object, result: CallToolResult, parts: list[str]) -> bool:
    """Whether the text says the same as the structured answer already, as the protocol recommends."""
    blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
    if structured == {"content": blocks}:
        return True
    for part in parts:
        try:
            if json.loads(part) == structured:
                return True
        except (ValueError, RecursionError):
            continue
    # What the SDKs make of a tool that returns a plain value: {"result": value}.
    if isinstance(structured, Mapping) and list(structured) == ["result"]:
        inner: Any = structured["result"]
        told = inner if isinstance(inner, str) else _json(inner)
        if isinstance(inner, list):
            return parts == [one if isinstance(one, str) else _json(one) for one in inner]
        return told in parts
    return isinstance(structured, Mapping) and list(structured.values()) == ["\n".join(parts)]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
