"""A model that follows a script, for tests: it fails on a call too many and on a step too few.

model = ScriptedModel([call("shell", command="make"), say("All done.")])
...
model.assert_finished()
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from goalmode.domain.messages import Reply, Request, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.model import strict_json
from goalmode.model.ids import used_ids, with_unique_ids
from goalmode.model.lint import lint
from goalmode.model.wire import openai_messages

USAGE = Usage(input=100, output=20)
"""What a scripted reply reports unless the script says otherwise."""

Step = Reply | BaseException | Callable[[Request], Reply | Awaitable[Reply]]


class UnexpectedModelCall(AssertionError):
    """The model was asked once more than the script says."""


class UnconsumedModelSteps(AssertionError):
    """The script goes on where the run ended."""


class InvalidRequest(AssertionError):
    """A provider would have refused this request."""


class ScriptedModel:
    """Answers each request with the next step: a reply, an exception that is raised, or a function of the request.

    Attributes:
        requests: every request, in order.
        violations: what a strict provider would have refused, over all requests.
    """

    def __init__(self, steps: Iterable[Step], *, strict: bool = True) -> None:
        self._steps, self._strict, self._next = list(steps), strict, 0
        self.requests: list[Request] = []
        self.violations: list[str] = []

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`.

        Raises:
            UnexpectedModelCall: no step is left.
            InvalidRequest: the request is not wire-valid and the model is strict.
        """
        self.requests.append(request)
        self._lint(request)
        if self._next >= len(self._steps):
            raise UnexpectedModelCall(
                f"call {len(self.requests)}, but the script has {len(self._steps)} steps"
            )
        step = self._steps[self._next]
        self._next += 1
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            made = step(request)
            step = await made if inspect.isawaitable(made) else made
        return replace(step, calls=with_unique_ids(step.calls, used_ids(request.messages)))

    def assert_finished(self) -> None:
        """Raises:
        UnconsumedModelSteps: steps are left.
        """
        left = len(self._steps) - self._next
        if left:
            raise UnconsumedModelSteps(f"{left} of {len(self._steps)} steps were not used")

    def _lint(self, request: Request) -> None:
        sent = [openai_messages.messages(request.messages), openai_messages.tools(request.tools)]
        found = lint(*json.loads(strict_json.dumps(sent)))
        self.violations += found
        if found and self._strict:
            raise InvalidRequest(found[0])


def say(text: str, *, stop: StopReason = StopReason.END_TURN, usage: Usage = USAGE) -> Reply:
    """A reply of prose alone."""
    return Reply(stop, text, usage=usage, stop_raw=stop.value.lower(), provider="scripted", model="scripted")


def call(tool: str, /, **arguments: object) -> Reply:
    """A reply with one tool call."""
    raw = json.dumps(arguments, ensure_ascii=False)
    return replace(say("", stop=StopReason.TOOL_USE), calls=(ToolCall("", tool, raw),))


def calls(*replies: Reply) -> Reply:
    """One reply with the text and calls of several."""
    merged = tuple(c for reply in replies for c in reply.calls)
    text = "\n".join(reply.text for reply in replies if reply.text)
    return replace(say(text, stop=StopReason.TOOL_USE), calls=merged)
