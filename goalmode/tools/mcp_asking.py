"""What a server asks in the middle of a call (elicitation) while nobody is there: the wakeup ends until somebody is.

The call comes to nothing, the question goes to a person, and when the model makes the same call again in the next
wakeup, the server's same question is answered with what the person said. Another call, or another question, is asked
anew: no answer serves twice.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
)

from goalmode.tools.human import HandOver

_YES, _NO = {"yes", "y", "true", "ok", "是"}, {"no", "n", "false", "否"}
_DECLINED = {"decline", "declined", "reject", "refuse", "拒绝"}


@dataclass
class Answers:
    """What a person answered since the last wakeup, by session id; each serves once."""

    given: dict[str, str] = field(default_factory=dict)

    def take(self, session: str) -> str | None:
        return self.given.pop(session, None)


@dataclass
class Asked:
    """The questions of one call in the middle of it.

    Attributes:
        call: server, tool and arguments, by which the same call is known again.
        open: the first that nobody has answered.
    """

    server: str
    tool: str
    call: str
    answers: Answers
    open: HandOver | None = None

    def answer(self, question: ElicitRequestParams) -> ElicitResult:
        """What the server is told: the person's answer, or that nobody is there ("cancel")."""
        session = self.session(question)
        given = self.answers.take(session)
        result = None if given is None else _result(question, given)
        if result is not None:
            return result
        self.open = self.open or self._hand_over(question, session, misread=given)
        return ElicitResult(action="cancel")

    def session(self, question: ElicitRequestParams) -> str:
        """Not the server's own id: it makes another one each time it asks."""
        if isinstance(question, ElicitRequestURLParams):
            asks = question.url.partition("?")[0]  # Behind it is what differs from one time to the next.
        else:
            asks = json.dumps(question.requested_schema, sort_keys=True, default=str)
        text = "\0".join((self.call, question.message, asks))
        return f"{self.server}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"

    def _hand_over(self, question: ElicitRequestParams, session: str, misread: str | None) -> HandOver:
        if isinstance(question, ElicitRequestURLParams):
            action = f"{question.message}\nOpen {question.url}, and answer when it is done."
        else:
            action = f"{question.message}\n{_form(question.requested_schema)}"
        if misread is not None:
            action = f"{action}\nThe last answer could not be read: {misread[:200]}"
        reason = f"the MCP server {self.server} asks in the middle of its tool {self.tool}"
        return HandOver(action.strip(), reason, session)


def call_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """By what the same call is known again."""
    return json.dumps([tool, arguments], sort_keys=True, separators=(",", ":"))


def _result(question: ElicitRequestParams, answer: str) -> ElicitResult | None:
    """A person's answer as the server wants it; None if it cannot be read as one."""
    if answer.strip().lower() in _DECLINED:
        return ElicitResult(action="decline")
    if isinstance(question, ElicitRequestURLParams):
        return ElicitResult(action="accept")
    if not _fields(question.requested_schema) and answer.strip().lower() in _NO:
        return ElicitResult(action="decline")
    content = _content(question, answer.strip())
    return None if content is None else ElicitResult(action="accept", content=content)


def _content(question: ElicitRequestFormParams, answer: str) -> dict[str, Any] | None:
    fields = _fields(question.requested_schema)
    given = _object(answer)
    if given is None and len(fields) == 1:
        given = {next(iter(fields)): answer}
    if given is None:
        return {} if not fields else None
    content = {}
    for name, value in given.items():
        if name not in fields:
            return None
        read = _value(fields[name], value)
        if read is None:
            return None
        content[name] = read
    required = question.requested_schema.get("required")
    missing = [name for name in required if name not in content] if isinstance(required, list) else []
    return None if missing else content


def _value(schema: Mapping[str, Any], value: Any) -> Any:
    """The value as the field's type; None if it is not of it."""
    word = value.strip().lower() if isinstance(value, str) else value
    match schema.get("type"):
        case "boolean":
            if isinstance(value, bool):
                return value
            return True if word in _YES else False if word in _NO else None
        case "integer" | "number" as kind:
            try:
                number = float(value) if not isinstance(value, bool) else None
            except (TypeError, ValueError):
                return None
            if number is None or (kind == "integer" and not number.is_integer()):
                return None
            return int(number) if kind == "integer" else number
        case "array":
            return value if isinstance(value, list) and all(isinstance(one, str) for one in value) else None
        case _:
            options = schema.get("enum")
            if isinstance(options, list) and value not in options:
                return None
            return value if isinstance(value, str) else None


def _form(schema: Mapping[str, Any]) -> str:
    """How to answer, in words."""
    fields = _fields(schema)
    if not fields:
        return "Answer yes to accept, or decline."
    told = [_field(name, one) for name, one in fields.items()]
    if len(told) == 1:
        return f"Answer with {told[0]}, or decline."
    return f"Answer with a JSON object of {'; '.join(told)}; or decline."


def _field(name: str, schema: Mapping[str, Any]) -> str:
    options = schema.get("enum")
    kind = "yes or no" if schema.get("type") == "boolean" else str(schema.get("type", "string"))
    if isinstance(options, list):
        kind = "one of " + ", ".join(map(str, options))
    described = schema.get("description") or schema.get("title")
    return f"{name} ({kind})" + (f": {described}" if described else "")


def _fields(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    given = schema.get("properties")
    if not isinstance(given, Mapping):
        return {}
    return {str(name): one for name, one in given.items() if isinstance(one, Mapping)}


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
