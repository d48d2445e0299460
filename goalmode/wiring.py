"""The only module that knows concrete classes: it puts a store, a model, tools and templates together."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path

import anyio
from anyio import to_thread

from goalmode.context import rebuild as context
from goalmode.context.movement import entered
from goalmode.context.overflow.sawtooth import Outgrown
from goalmode.context.render import Prompts, package_prompts
from goalmode.context.tokens import Remembered, TokenCounter, counter, message_tokens, tools_tokens
from goalmode.credentials import Credentials, of_models
from goalmode.domain.clock import Clock
from goalmode.domain.exits import Exit
from goalmode.domain.goal import Goal
from goalmode.domain.messages import Message, System, ToolSpec
from goalmode.domain.outside import Server, allows, may_use
from goalmode.domain.profile import ModelProfile, Protocol
from goalmode.domain.questions import AnsweredBy
from goalmode.domain.redact import Redactor
from goalmode.domain.sandbox import AUTO, SandboxSettings
from goalmode.domain.snapshot import Observed, Snapshot
from goalmode.errors import ModelError
from goalmode.loop.logs import logged, logging_for
from goalmode.loop.ports import Event, Ports, Sink
from goalmode.loop.wakeup import run_wakeup as _run_wakeup
from goalmode.model.json_action import JsonActions
from goalmode.model.mend import Mending
from goalmode.model.port import Model, OpenModel
from goalmode.model.retry import Retrying
from goalmode.model.rules import rules_for
from goalmode.model.wire.anthropic import AnthropicMessages
from goalmode.model.wire.openai_chat import OpenAIChat
from goalmode.model.wire.openai_first import OpenAIFirstToken
from goalmode.model.wire.openai_responses import OpenAIResponses
from goalmode.orchestrator import wake as orchestrator
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.settings import SANDBOX
from goalmode.settle import files
from goalmode.settle.gate import judge
from goalmode.settle.protect import changes
from goalmode.state.snapshot import context_to_rows
from goalmode.state.store import Store
from goalmode.state.wakeups import StoredContext
from goalmode.tools.builtin import builtin_tools
from goalmode.tools.builtin.memory import MEMORY_TOOLS
from goalmode.tools.builtin.transition import transition
from goalmode.tools.mcp import Outside
from goalmode.tools.named import hash_of
from goalmode.tools.paths import Workspace
from goalmode.tools.registry import Registry, Tool
from goalmode.tools.sandbox import Sandbox, sandbox_for

WIRES: Mapping[str, Callable[..., OpenModel]] = {
    "openai": OpenAIChat,
    "openai-responses": OpenAIResponses,
    "anthropic": AnthropicMessages,
}
"""By the name of the wire format in a model's profile."""


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Workshop:
    """Everything the wakeups of one goal are run with. Also the renderer of their contexts.

    Attributes:
        registry: the tools on offer: state and control tools always, the others as far as the goal allows them.
        environment: of the tools' child processes and of servers; it holds no credentials.
        servers: the MCP servers that are started with a wakeup; they run as the user, in no sandbox.
        sandboxing: what is configured of sandboxes. sandbox: what its commands run in, chosen as a wakeup begins.
    """

    goal: Goal
    profile: ModelProfile
    registry: Registry
    environment: Mapping[str, str]
    redact: Redactor = field(default_factory=Redactor)
    prompts: Prompts = field(default_factory=package_prompts)
    sandboxing: SandboxSettings = SandboxSettings()
    sandbox: Sandbox | None = None
    servers: tuple[Server, ...] = ()

    @cached_property
    def counter(self) -> TokenCounter:
        # For the whole wakeup: when its context is rendered anew, most of what it says has been said before.
        return Remembered(counter(self.profile.encoding, self.profile.token_factor))

    @cached_property
    def jail(self) -> Workspace:
        return Workspace(Path(self.goal.workspace))

    def observe(self, goal: Goal) -> tuple[Observed, ...]:
        return files.observe(self.jail, goal.deliverables)

    def render(self, snapshot: Snapshot) -> RenderedContext:
        return self._rebuild(snapshot)

    def rerender(
        self, snapshot: Snapshot, conversation: Sequence[Message], *, limit: int, turns_left: int
    ) -> RenderedContext:
        return self._rebuild(snapshot, turns_left=turns_left, outgrown=Outgrown(tuple(conversation), limit))

    def _rebuild(
        self, snapshot: Snapshot, *, turns_left: int | None = None, outgrown: Outgrown | None = None
    ) -> RenderedContext:
        rendered = context.rebuild(
            self._as_seen(snapshot),
            self.profile,
            self.registry.offering(snapshot.goal.current.tools).specs(),
            counter=self.counter,
            prompts=self.prompts,
            turns_left=turns_left,
            outgrown=outgrown,
        )
        return RenderedContext(rendered, self.profile.encoding or "o200k_base*")

    def with_tools(self, tools: Sequence[Tool]) -> Workshop:
        """With the tools of servers beside its own, as far as the goal allows them."""
        allowed = self.goal.settings.tools
        chosen = [tool for tool in tools if allowed is None or allows(allowed, tool.name)]
        return replace(self, registry=self.registry.with_(*chosen))

    @property
    def room_for_tools(self) -> int:
        """Tokens that the tools of servers may take in a context: half of what our own leave of it."""
        budget = self.goal.settings.context_tokens or self.profile.context_tokens
        return max(0, budget - tools_tokens(self.counter, self.registry.specs())) // 2

    def _as_seen(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot beside the workspace: what was verified may have changed, and what must not change too."""
        return replace(
            snapshot,
            work=snapshot.work.as_seen(cache(partial(hash_of, self.jail))),
            changed=tuple(changes(self.jail, snapshot.goal.protected).items()),
        )

    def edited(self, goal: Goal) -> str:
        return context.edited(goal, self.profile, counter=self.counter, prompts=self.prompts)

    def entered(self, goal: Goal, pending: bool) -> str:
        return entered(goal, self.prompts, pending=pending)

    def absent(self, goal: Goal) -> tuple[str, ...]:
        return tuple(seen.path for seen in self.observe(goal) if not seen.exists)

    def prompt(self, name: str, **values: object) -> str:
        return self.prompts.prompt(name, self.goal.settings.lang, **values)

    def count_message(self, message: Message) -> int:
        return message_tokens(self.counter, message)


@dataclass(frozen=True)
class RenderedContext:
    """A rendered context, in the forms in which it is sent and stored."""

    rendered: context.Rendered
    encoding: str

    @property
    def messages(self) -> tuple[Message, ...]:
        return self.rendered.messages

    @property
    def tokens(self) -> int:
        return self.rendered.tokens

    def stored(self) -> StoredContext:
        r = self.rendered
        sections = [
            {"name": s.name, "tokens": s.tokens, "left_out": s.left_out, "withheld": s.withheld}
            for s in r.sections
        ]
        later = tuple(m for m in r.messages if not isinstance(m, System))
        return StoredContext(
            r.text, r.sha256, r.tokens, self.encoding, r.completion_phrases, sections, context_to_rows(later)
        )


def workshop(
    goal: Goal,
    profile: ModelProfile,
    *,
    tools: Sequence[Tool] = (),
    environ: Mapping[str, str] = os.environ,
    known: Credentials | None = None,
    redact: Redactor | None = None,
    prompts: Prompts | None = None,
    sandboxing: SandboxSettings | None = None,
    servers: Sequence[Server] = (),
) -> Workshop:
    """What `goal` is run with: the built-in tools that it allows, and `tools` beside them.

    Args:
        known: what is kept from the tools' processes; None: the keys of models.
        redact: what is struck out; None: what is known.
        sandboxing: what is configured of sandboxes; None: `$GOALMODE_SANDBOX`, else `auto`.

    Raises:
        BadInput: the goal, or a movement of its workflow, names a tool that does not exist.
    """
    registry = builtin_tools()
    for tool in tools:
        registry = registry.with_(tool)
    workflow, allowed = goal.settings.workflow, goal.settings.tools
    for movement in workflow.movements:
        registry.only(movement.tools or ())
    if allowed is not None:
        registry.only(allowed)
    registry = registry.offering(allowed)
    if not goal.settings.user_tools:
        registry = Registry(tool for tool in registry if tool not in MEMORY_TOOLS)
    if len(workflow.movements) > 1:
        registry = registry.with_(transition(workflow.names))
    known = known or of_models([profile], environ)
    return Workshop(
        goal,
        profile,
        registry,
        known.environment(environ),
        redact or known.redact,
        prompts or package_prompts(),
        sandboxing or SandboxSettings(environ.get(SANDBOX) or AUTO),
        servers=tuple(server for server in servers if may_use(allowed, server)),
    )


def open_model(
    profile: ModelProfile,
    key: str | None,
    *,
    clock: Clock,
    lang: str = "en",
    on_retry: Callable[[ModelError, float, int], None] | None = None,
) -> OpenModel:
    """The model that `profile` describes: its wire format, retried, and repaired when a conversation is refused.

    A model that needs the JSON action protocol is behind it.
    """
    count = counter(profile.encoding, profile.token_factor).count
    wire = WIRES[profile.wire](profile, key, clock=clock, estimate=count)
    mending = Mending(Retrying(wire, clock, on_retry=on_retry), rules_for(profile))
    return JsonActions(mending, lang) if profile.protocol is Protocol.JSON else mending


def open_first_token(
    profile: ModelProfile,
    key: str | None,
    *,
    top: int,
    clock: Clock,
    on_retry: Callable[[ModelError, float, int], None] | None = None,
) -> OpenModel:
    """The model that `profile` describes, whose replies tell the `top` likeliest first tokens; retried.

    With `top` 0 it is any model of any wire format, and tells none.
    """
    if top == 0:
        return open_model(replace(profile, protocol=Protocol.NATIVE), key, clock=clock, on_retry=on_retry)
    count = counter(profile.encoding, profile.token_factor).count
    wire = OpenAIFirstToken(profile, key, top=top, clock=clock, estimate=count)
    return Retrying(wire, clock, on_retry=on_retry)


def begin_wakeup(
    store: Store,
    goal: Goal,
    *,
    profile: ModelProfile,
    tools: Sequence[Tool] = (),
    only_if_due: bool = True,
    shop: Workshop | None = None,
    delivery: int | None = None,
) -> Wake | Skip:
    """Claim `goal` for one wakeup, its context rendered afresh. Starts the heartbeat.

    Returns Skip, with nothing stored, if the goal cannot be woken just now; a wakeup whose owner is dead is first
    closed as INTERRUPTED.

    Raises:
        BadInput: the goal's cost is limited, and the model has no price; or its commands cannot be kept in the sandbox
            that it asks for.
    """
    made = shop or workshop(goal, profile, tools=tools)
    workspace = Path(made.goal.workspace)
    sandbox = sandbox_for(workspace, made.goal.settings, made.sandboxing, made.environment)
    sandbox = sandbox.keeping_store(store.path)
    return orchestrator.begin_wakeup(
        store,
        goal.id,
        replace(made, sandbox=sandbox),
        only_if_due=only_if_due,
        delivery=delivery,
        sandbox=sandbox.mode,
    )


async def run_wakeup(
    wake: Wake,
    model: Model,
    *,
    sink: Sink | None = None,
    stop: Callable[[], Exit | None] | None = None,
) -> Exit:
    """Take turns until something ends the wakeup, and store how it ended; see `goalmode.loop.wakeup`.

    Args:
        sink: is told every event after its commit; the last is `wakeup_closed`.
        stop: asked several times a second; returns an ending to stop with it.
    """
    shop = wake.renderer
    assert isinstance(shop, Workshop), "the wakeup was begun by wiring.begin_wakeup"
    assert shop.sandbox is not None, "begin_wakeup chooses it"
    confinement = shop.sandbox.confinement()
    ports = Ports(
        model=model,
        profile=shop.profile,
        registry=shop.registry,
        clock=wake.clock,
        prompt=shop.prompt,
        edited=shop.edited,
        entered=shop.entered,
        absent=shop.absent,
        count_message=shop.count_message,
        workspace=Path(shop.goal.workspace),
        judge=judge(Path(shop.goal.workspace), shop.redact, confinement),
        environment=shop.environment,
        confinement=confinement,
        redact=shop.redact,
        sink=logged(_ignore if sink is None else _unfailing(sink)),
        stop=stop or _never,
        outside=_outside(wake, shop),
        equip=partial(_equip, wake, shop),
    )
    try:
        with logging_for(wake.goal.uid, wake.seq):
            return await _run_wakeup(wake, ports)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(confinement.close)


def _outside(wake: Wake, shop: Workshop) -> Outside | None:
    if not shop.servers:
        return None
    answers = {
        question.asking.session_id: question.answer
        for question in wake.questions
        if question.asking.session_id
        and question.wakeup == wake.seq - 1  # An older one was for a call that nobody remembers.
        and question.answered_by is AnsweredBy.USER
    }
    workspace, room = Path(shop.goal.workspace), shop.room_for_tools
    count = partial(_tokens_of, shop.counter)
    return Outside(shop.servers, workspace, shop.environment, count, room, answers)


def _tokens_of(counter: TokenCounter, spec: ToolSpec) -> int:
    return tools_tokens(counter, [spec])


def _equip(wake: Wake, shop: Workshop, tools: Sequence[Tool]) -> Registry:
    """Also what the wakeup's context is rendered for from now on."""
    equipped = shop.with_tools(tools)
    wake.renderer = equipped
    return equipped.registry


def _unfailing(sink: Sink) -> Sink:
    """A display that fails must not end the wakeup that it shows: it is logged once, and told nothing more."""
    failed = False

    def told(event: Event) -> None:
        nonlocal failed
        if failed:
            return
        try:
            sink(event)
        except Exception:  # noqa: BLE001 - it is not ours
            failed = True
            _log.exception("the sink failed at %s; it is told nothing more", event.kind)

    return told


def _ignore(event: Event) -> None:
    pass


def _never() -> None:
    return None
