"""What the names in agent code mean. A name is looked at word by word: `maxIdleIterations` is max, idle, iterations."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@cache
def words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case."""
    return tuple(word.lower() for word in _WORD.findall(name))


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOOLS = re.compile(
    r"(?:^|_)(?:tool|function)_?(?:call|use|request|invocation|block)s?(?:_(?:block|part|item|list|request|count)s?)?$"
)
REASON = re.compile(r"(?:^|_)(?:stop|finish|finished|terminal|termination|completion)_?reasons?$")
TOOL_WORDS = _set(
    "tool_use tool_calls tool_call function_call tool-calls tool-call function_calls toolCall toolUse"
)
COUNTS = _set("length size count")

IDLE = _set(
    "idle idles silent silence quiet inactive inactivity stale stall stalled stable unchanged empty blank nothing "
    "noop same dormant"
)
ABSENT = _set("no not without missing non zero")
_HAPPENS = _set("tool tools progress change changes output activity response work")
_NO_IDLING = _set(
    "error errors fail fails failure failures failed retry retries attempt attempts mistake mistakes invalid malformed "
    "exception exceptions rejected"
)
"""What counts these guards against failure; it does not tell that the work is done."""

CLOCKS = _set("time monotonic now perf_counter utcnow time_ns monotonic_ns process_time getTime")
TIMES = _set("elapsed deadline timeout expired")
LAST = _set(
    "activity output message messages event update updated seen progress chunk token response tool call active"
)
EXISTS = _set(
    "exists isfile is_file isdir is_dir existsSync access accessSync stat statSync lstat pathExists pathExistsSync "
    "fileExists file_exists lexists glob rglob"
)
ON_PURPOSE = _set(
    "stop abort cancel kill pause interrupt quit halt shutdown exit lock pid socket sock port ready config env venv "
    "cache node_modules git package"
)
"""A file so named is how somebody stops the run, or is no result of it."""

RESULTS = _set(
    "output outputs result results response reply answer report done complete completed finished artifact summary "
    "deliverable sentinel marker status final"
)

AGENTS = _set("agent agents subagent subagents llm assistant claude codex copilot orchestrator swarm crew")
MODELS = _set("llm model chat openai anthropic claude gpt gemini agent subagent assistant completion completions "
              "messages provider ai lm api conversation session")  # fmt: skip
ASKING = _set("chat complete completion generate invoke ainvoke acompletion call ask query request respond send stream "
              "create predict sample prompt think infer run step turn post inference")  # fmt: skip
BY_NAME = _set(
    "generateText streamText generateObject streamObject generate_content generateContent generateContentStream "
    "generate_content_async generate_content_stream acompletion completion converse converse_stream "
    "ChatCompletion llm model createMessage sendMessageStream"
)
"""Calls that ask a model, whatever they are called on."""

DONE = _set("done complete completed completes finish finished success succeeded successful completion final")
FAILED = _set(
    "error errors err fail failed failure fails stuck abort aborted incomplete truncated refusal refused timeout "
    "timedout timed exceeded limit early blocked unknown cancelled canceled cancel interrupted reject rejected "
    "stalled stopped partial exhausted throw max needs"
)
OF_WORK = _set("set mark is on as handle agent run turn task session work response stream conversation and")
"""What a name may say beside DONE to mark the work as done: `onRunComplete`, not `completeLine`."""

RUNNING = _set("running active busy working streaming thinking processing responding generating")
SUBJECTS = _set(
    "name tool type event kind action method status state subtype command function phase step stage"
)
EVENTS = _set(
    "done complete completed end exit close finish finished message_stop run_finished result turn_end agent_end"
)
STATUS = re.compile(r"[\w.:-]{1,40}")
"""A literal of one word is a status; a sentence is only told to somebody."""


class Reason(StrEnum):
    """Kinds of terminal reasons, over the words of the providers."""

    TOOLS = "tool_use"
    END = "end_turn"
    PAUSE = "pause_turn"
    CUT = "max_tokens"
    REFUSED = "refusal"
    CONTEXT = "context window"


_REASONS = {
    Reason.TOOLS: _set("tool_use tool_calls tool_call function_call tool"),
    Reason.END: _set("end_turn stop stop_sequence stopped end eos completed complete finished"),
    Reason.PAUSE: _set("pause_turn pause paused"),
    Reason.CUT: _set("length model_length incomplete token_limit truncated"),
    Reason.REFUSED: _set("refusal refused content_filter prohibited_content guardrail_intervened blocklist"),
}
_KINDS = {word: kind for kind, known in _REASONS.items() for word in known}
_BY_WORDS = (
    ({"max", "tokens"}, Reason.CUT),
    ({"max", "token"}, Reason.CUT),
    ({"max", "output"}, Reason.CUT),
    ({"context", "exceeded"}, Reason.CONTEXT),
    ({"context", "overflow"}, Reason.CONTEXT),
    ({"safety"}, Reason.REFUSED),
    ({"recitation"}, Reason.REFUSED),
)


@cache
def reason(word: str) -> Reason | None:
    """The kind of a provider's word: `"tool-calls"`, `"MAX_TOKENS_EXCEEDED"` and `"maxTokens"` are known as well."""
    if (known := _KINDS.get(snake(word))) is not None or len(word) > 60:
        return known
    found = set(words(word))
    return next((kind for parts, kind in _BY_WORDS if parts <= found), None)


@cache
def snake(name: str) -> str:
    return "_".join(words(name))


def says_tools(name: str) -> bool:
    """Whether a name is one of tool calls that a reply asks for."""
    return TOOLS.search(snake(name)) is not None


def says_reason(name: str) -> bool:
    return REASON.search(snake(name)) is not None


def says_idle(name: str) -> bool:
    """Whether a counter with this name counts that nothing happens."""
    found = set(words(name))
    if found & _NO_IDLING:
        return False
    return bool(found & IDLE or (found & ABSENT and found & _HAPPENS))


def says_agent(name: str) -> bool:
    """Whether a name is about an agent; a browser's user agent is none."""
    found = words(name)
    return any(word in AGENTS and found[max(0, at - 1)] != "user" for at, word in enumerate(found))
