"""What is kept and shown of a call: secrets struck out first, then made sendable, and only then cut."""

from __future__ import annotations

from goalmode.domain.calls import CallOutcome, CallRecord, arguments_digest, digest
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line, sendable
from goalmode.tools.cache import marked
from goalmode.tools.execute import Executed
from goalmode.tools.output import capped
from goalmode.tools.output import shown as cut
from goalmode.tools.plan import Planned
from goalmode.tools.registry import ToolContext

SHOWN = 16_000
"""Characters of a result that the model sees, head and tail."""

STORED = 1_048_576
"""Bytes of a result that are stored, head and tail."""

BRIEF = 200
"""Characters of a call's subject."""

_LOOKED_AT = 65_536
"""Characters of a subject that are read for secrets: far more than is kept, far less than a call may hold."""


def record(planned: Planned, executed: Executed, context: ToolContext, *, limit: int = SHOWN) -> CallRecord:
    """The one record of a call. A failed call changes no state and ends no wakeup.

    Args:
        limit: characters of the result that the model sees.
    """
    output = executed.output
    size = output.size if output.size is not None else len(output.text.encode("utf-8", "surrogatepass"))
    text, struck = context.redact.count(output.text)
    text = sendable(text)
    stands = executed.outcome is CallOutcome.SUCCESS
    return CallRecord(
        position=planned.position,
        call_id=planned.call.id,
        tool=planned.tool.name if planned.tool is not None else one_line(planned.call.name[:81], 80),
        effect=planned.tool.effect if planned.tool is not None else None,
        outcome=executed.outcome,
        shown=marked(cut(text, limit, size), executed.cache),
        body=capped(text, STORED),
        size=size,
        exit_code=output.exit_code,
        milliseconds=executed.milliseconds,
        brief=subject(planned, context.redact),
        arguments_sha=arguments_digest(planned.call.arguments),
        result_sha=digest(text.replace(output.varies, "", 1) if output.varies else text),
        redactions=struck + output.redactions,
        patch=output.patch if stands else None,
        exit=output.exit if stands else None,
        cache=executed.cache,
    )


def subject(planned: Planned, redact: Redactor) -> str:
    """What a call is about, in at most `BRIEF` characters: a command line, a path. Empty where it cannot be told."""
    if planned.tool is None or planned.arguments is None:
        return ""
    try:
        brief = planned.tool.brief(planned.arguments)
    except Exception:  # noqa: BLE001 - a call is recorded even if its subject cannot be named
        return ""
    return one_line(redact(sendable(brief[:_LOOKED_AT])), BRIEF)
