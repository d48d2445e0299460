"""A small stand-in for a checkout of GenericAgent: the parts of its contract that we rely on, as documented.

Call order of the hooks, ignored return values, swallowed exceptions, what leaks from task to task, how its tasks end
and what is seen of that, and the loader of `--reflect` with its hot reload. Its model is a list of replies.
"""

from __future__ import annotations

import importlib.util
import json
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

MAX_TURNS = 180
ASK_TURN = 175
"""Each so many turns it orders the model to ask the user."""


def call(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return name, arguments


@dataclass
class Reply:
    """What its model says, with the calls in it."""

    text: str = ""
    calls: Sequence[tuple[str, dict[str, Any]]] = ()
    usage: dict[str, int] = field(default_factory=lambda: {"inp": 100, "cached": 40, "out": 10})


Step = Reply | Callable[["Client"], Reply]


class Response:
    def __init__(self, reply: Reply, number: int) -> None:
        self.content, self.thinking = reply.text, ""
        self.tool_calls = [
            SimpleNamespace(
                function=SimpleNamespace(name=name, arguments=json.dumps(given)), id=f"c{number}_{n}"
            )
            for n, (name, given) in enumerate(reply.calls)
        ]


class Client:
    """Its client with a session behind it, which keeps the whole conversation."""

    def __init__(self, steps: Sequence[Step], stats: dict[str, Any]) -> None:
        self.backend = SimpleNamespace(
            history=[], model="stub-model", api_key="sk-stub-0123456789abcdef", context_win=35_000
        )
        self.last_tools = ""
        self.steps, self.stats = list(steps), stats
        self.requests: list[dict[str, Any]] = []

    def chat(self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Iterator[str]:
        self.backend.history += [dict(message) for message in messages]
        self.requests.append(
            {
                "history": [dict(m) for m in self.backend.history],
                "tools": [t["function"]["name"] for t in tools],
            }
        )
        step = self.steps.pop(0)
        reply = step(self) if callable(step) else step
        self.stats.update(reply.usage)
        yield reply.text
        response = Response(reply, len(self.requests))
        if not reply.text.startswith("!!!Error:"):
            self.backend.history.append(
                {"role": "assistant", "content": reply.text, "calls": [c[0] for c in reply.calls]}
            )
        return response

    def text(self, number: int = -1) -> str:
        """All that a request holds."""
        return json.dumps(self.requests[number]["history"], ensure_ascii=False)


@dataclass
class StepOutcome:
    data: Any
    next_prompt: str | None = None
    should_exit: bool = False


class Handler:
    def __init__(self, parent: Agent, history: list[str], cwd: str) -> None:
        self.parent, self.history_info, self.cwd = parent, history, cwd
        self.working: dict[str, Any] = {}
        self.current_turn, self.max_turns, self._empty_ct = 0, 0, 0
        self.code_stop_signal: list[int] = []

    def dispatch(
        self, hooks: HookModule, tool_name: str, args: dict[str, Any], response: Response, index: int
    ) -> StepOutcome:
        method = f"do_{tool_name}"
        if not hasattr(self, method):
            return StepOutcome(None, f"unknown tool {tool_name}")
        args["_index"] = index
        hooks.trigger(
            "tool_before", {"self": self, "tool_name": tool_name, "args": args, "response": response}
        )
        ret = getattr(self, method)(args, response)
        hooks.trigger(
            "tool_after",
            {"self": self, "tool_name": tool_name, "args": args, "response": response, "ret": ret},
        )
        return ret  # type: ignore[no-any-return]

    def do_code_run(self, args: dict[str, Any], response: Response) -> StepOutcome:
        return StepOutcome(
            {"status": "success", "stdout": f"ran {args.get('script')}", "exit_code": 0}, self.anchor()
        )

    def do_file_read(self, args: dict[str, Any], response: Response) -> StepOutcome:
        path = Path(self.cwd, args["path"])
        return StepOutcome(path.read_text() if path.exists() else "Error: no such file", self.anchor())

    def do_file_write(self, args: dict[str, Any], response: Response) -> StepOutcome:
        Path(self.cwd, args["path"]).write_text(args["content"])
        return StepOutcome({"status": "success"}, self.anchor())

    def do_file_patch(self, args: dict[str, Any], response: Response) -> StepOutcome:
        path = Path(self.cwd, args["path"])
        old = path.read_text() if path.exists() else ""
        if args["old_content"] not in old:
            return StepOutcome({"status": "error", "msg": "no match"}, self.anchor())
        path.write_text(old.replace(args["old_content"], args["new_content"]))
        return StepOutcome({"status": "success"}, self.anchor())

    def do_breaks(self, args: dict[str, Any], response: Response) -> StepOutcome:
        raise ValueError("the tool is broken")

    def do_ask_user(self, args: dict[str, Any], response: Response) -> StepOutcome:
        return StepOutcome({"status": "INTERRUPT", "data": args}, "", should_exit=True)

    def do_update_working_checkpoint(self, args: dict[str, Any], response: Response) -> StepOutcome:
        self.working["key_info"] = args["key_info"]
        return StepOutcome({"result": "updated"}, self.anchor())

    def do_start_long_term_update(self, args: dict[str, Any], response: Response) -> StepOutcome:
        return StepOutcome("This is L0", "distil")

    def do_no_tool(self, args: dict[str, Any], response: Response) -> StepOutcome:
        tail = response.content[-100:]
        if not response.content.strip() or "!!!Error:" in tail or "max_tokens !!!]" in tail:
            self._empty_ct += 1
            return (
                StepOutcome({}, should_exit=True)
                if self._empty_ct >= 3
                else StepOutcome({}, "[ERROR] Regenerate")
            )
        return StepOutcome(response)

    def anchor(self) -> str:
        history = (
            f"<history>\n{chr(10).join(self.history_info[-30:])}\n</history>" if self.current_turn % 2 else ""
        )
        kept = f"Current turn: {self.current_turn}\n<key_info>{self.working.get('key_info')}</key_info>"
        return f"\n### [WORKING MEMORY]\n{history}\n{kept}"

    def turn_end(self, response: Response, turn: int, next_prompt: str) -> str:
        self.history_info.append(f"[Agent] {response.content}")
        if turn % ASK_TURN == 0:
            next_prompt += (
                f"\n\n[DANGER] Turn {turn}. Must call ask_user to summarize progress. No more blind retries."
            )
        return next_prompt


class HookModule:
    """`plugins.hooks`: what a callback returns is not looked at, what it raises is swallowed."""

    def __init__(self) -> None:
        self.registry: dict[str, list[Callable[[dict[str, Any]], Any]]] = {}
        self.fired: list[str] = []
        self.errors: list[Exception] = []

    def register(self, event: str) -> Callable[[Callable[[dict[str, Any]], Any]], Any]:
        def decorate(function: Callable[[dict[str, Any]], Any]) -> Any:
            self.registry.setdefault(event, []).append(function)
            return function

        return decorate

    def trigger(self, event: str, ctx: dict[str, Any]) -> None:
        self.fired.append(event)
        for function in self.registry.get(event, ()):
            try:
                function(ctx)
            except Exception as error:  # noqa: BLE001 - as there
                self.errors.append(error)


def runner_loop(
    hooks: HookModule, client: Client, system: str, user_input: str, handler: Handler, schema: list[Any]
) -> Iterator[str]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": system},
        {"role": "user", "content": user_input},
    ]
    turn = 0  # And no exit_reason: as there, a loop without a turn ends with an UnboundLocalError.
    handler.max_turns = MAX_TURNS
    shared: dict[str, Any] = {
        "client": client,
        "handler": handler,
        "user_input": user_input,
        "tools_schema": schema,
    }
    hooks.trigger("agent_before", {**shared, "messages": messages, "system_prompt": system})
    while turn < handler.max_turns:
        turn += 1
        yield f"LLM Running (Turn {turn}) ..."
        for event in ("turn_before", "llm_before"):
            hooks.trigger(event, {**shared, "messages": messages, "turn": turn})
        response = yield from client.chat(messages, schema)
        hooks.trigger("llm_after", {**shared, "messages": messages, "turn": turn, "response": response})
        calls = [(c.function.name, json.loads(c.function.arguments), c.id) for c in response.tool_calls]
        results, prompts, exit_reason = [], [], {}
        for index, (name, args, call_id) in enumerate(calls or [("no_tool", {}, "")]):
            handler.current_turn = turn
            outcome = handler.dispatch(hooks, name, args, response, index)
            if outcome.should_exit:
                exit_reason = {"result": "EXITED", "data": outcome.data}
                break
            if not outcome.next_prompt:
                exit_reason = {"result": "CURRENT_TASK_DONE", "data": outcome.data}
                break
            if outcome.data is not None and name != "no_tool":
                told = (
                    json.dumps(outcome.data) if isinstance(outcome.data, dict | list) else str(outcome.data)
                )
                results.append({"tool_use_id": call_id, "content": told})
            prompts.append(outcome.next_prompt)
        if exit_reason:
            break
        next_prompt = handler.turn_end(response, turn, "\n".join(dict.fromkeys(prompts)))
        hooks.trigger(
            "turn_after", {**shared, "messages": messages, "turn": turn, "next_prompt": next_prompt}
        )
        messages = [{"role": "user", "content": next_prompt, "tool_results": results}]
    hooks.trigger("agent_after", {**shared, "exit_reason": exit_reason, "turn": turn})


class Agent:
    def __init__(self, steps: Sequence[Step], hooks: HookModule, temp: Path, schema: list[Any]) -> None:
        self.stats: dict[str, Any] = {}
        self.llmclient = Client(steps, self.stats)
        self.llmclients = [self.llmclient]
        self.history: list[str] = []
        self.handler: Handler | None = None
        self.task_queue: queue.Queue[Any] = queue.Queue()
        self.is_running = self.stop_sig = False
        self._hooks, self._temp, self._schema = hooks, temp, schema
        threading.Thread(target=self.run, daemon=True).start()

    def abort(self) -> None:
        if self.is_running:
            self.stop_sig = True
            if self.handler is not None:
                self.handler.code_stop_signal.append(1)

    def put_task(self, query: str) -> queue.Queue[dict[str, str]]:
        shown: queue.Queue[dict[str, str]] = queue.Queue()
        self.task_queue.put((query, shown))
        return shown

    def run(self) -> None:
        while True:
            query, shown = self.task_queue.get()
            self.is_running = True
            self.history.append(f"[USER]: {query[:200]}")
            handler = Handler(self, self.history, str(self._temp))
            if self.handler is not None and "key_info" in self.handler.working:
                handler.working["key_info"] = (
                    f"{self.handler.working['key_info']}\n[SYSTEM] of an earlier conversation"
                )
            self.handler = handler
            said = ""
            try:
                for chunk in runner_loop(
                    self._hooks, self.llmclient, "You are GenericAgent.", query, handler, self._schema
                ):
                    if self.stop_sig:
                        break
                    said += chunk
                shown.put({"done": said})
            except Exception as error:  # noqa: BLE001 - as there
                shown.put({"done": f"{said}\n```\n{type(error).__name__}: {error} @ ga.py:1\n```"})
            finally:
                self.is_running = self.stop_sig = False
                self.task_queue.task_done()


def schema(*names: str) -> list[dict[str, Any]]:
    found = names or (
        "code_run",
        "file_read",
        "file_write",
        "breaks",
        "update_working_checkpoint",
        "ask_user",
        "start_long_term_update",
    )
    properties = {"key_info": {"type": "string"}, "path": {"type": "string"}, "script": {"type": "string"}}
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": name,
                "parameters": {"type": "object", "properties": properties},
            },
        }
        for name in found
    ]


@dataclass
class Checkout:
    """The process: `agentmain` as the main program, its agent and its hooks."""

    agent: Agent
    hooks: HookModule
    main: SimpleNamespace
    printed: list[str] = field(default_factory=list)


def checkout(root: Path, steps: Sequence[Step]) -> Checkout:
    temp = root / "temp"
    temp.mkdir(parents=True, exist_ok=True)
    hooks, tools = HookModule(), schema()
    agent = Agent(steps, hooks, temp, tools)
    return Checkout(agent, hooks, SimpleNamespace(agent=agent, TOOLS_SCHEMA=tools))


class Loader:
    """How `--reflect` loads a file, asks it, drains its task and loads it again; one `step` a round of the loop."""

    def __init__(
        self, agent: Agent, path: Path, arguments: dict[str, str], *, drain_seconds: float = 60
    ) -> None:
        self.agent, self.path, self.arguments, self.drain = agent, path, arguments, drain_seconds
        spec = importlib.util.spec_from_file_location("reflect_script", path)
        assert spec is not None
        assert spec.loader is not None
        self._loader, self.module = spec.loader, importlib.util.module_from_spec(spec)
        self._load()

    def _load(self) -> None:
        self._loader.exec_module(self.module)
        self._modified = self.path.stat().st_mtime_ns
        self.module.init(self.arguments)

    def step(self) -> str | None:
        """One round; returns what `check` said."""
        if self.path.stat().st_mtime_ns != self._modified:
            self._load()
        task: str | None = self.module.check()
        if task and task != "/exit":
            shown = self.agent.put_task(task)
            try:
                item: dict[str, str] = {}
                while "done" not in item:
                    item = shown.get(timeout=self.drain)
                result = item["done"]
            except queue.Empty as error:
                result = f"[ERROR] {error}"
            self.module.on_done(result)
        return task
