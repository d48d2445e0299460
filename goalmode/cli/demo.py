"""`demo`: the same model, once over replayed and once over rebuilt contexts, with nothing faked but the model.
Then a second act, in `demo_endings`.

The model is a rule behind a real provider's HTTP on loopback: it works as long as its request holds few closing
phrases, and closes once it holds many. It says such phrases itself, beside every piece of work that it does.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from goalmode.cli import demo_endings
from goalmode.cli.output import say, say_json, table
from goalmode.configured import goal_profile
from goalmode.domain.contract import Requirement
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import ContextPolicy, Goal, GoalSettings, GoalSpec
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.skip import Skip
from goalmode.settings import Settings
from goalmode.state.store import Store
from goalmode.testing.script import closing_after
from goalmode.testing.steps import Step, text, tool
from goalmode.testing.stub import Stub
from goalmode.wiring import begin_wakeup, open_model, run_wakeup

QUOTA = 20
"""Turns of one wakeup."""

PARTS = 3 * QUOTA
"""Pieces of work: three whole wakeups of them."""

CLOSES_AT = 2 * QUOTA + 1
"""Closing phrases in a request at which the model closes. Each turn says two: one quota of turns stays below it."""

REPLAYED = 3
"""Wakeups of the goal that replays; the other is woken until it is done, or this many times and two more."""

OBJECTIVE = f"Write {PARTS} parts into parts.log, then report.md about them."
REPORT = "report.md"

_SAID = (
    "Part {} is written. All done, this is the final delivery.",
    "第 {} 部分已写好，全部完成，收口。",
)
_WORK = (
    f"n=$(cat parts.log 2>/dev/null | wc -l); [ $n -ge {PARTS} ] || echo part $((n + 1)) of {PARTS} >> parts.log; "
    f"echo parts: $(wc -l < parts.log) of {PARTS}"
)
_SAVED = {
    "key_info": "Parts go into parts.log, one line each. 任务完成，收口。",
    "summary": "All done. This is the final delivery.",
    "next_steps": ["count the lines of parts.log and go on from there"],
}


@dataclass(frozen=True, slots=True)
class Woken:
    """One wakeup of the demo. `working` counts the turns that called a tool."""

    turns: int
    working: int
    reason: str


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def demo(as_json: bool) -> int:
    """Compare replayed and rebuilt contexts, then show how goals end; without a key and without a network.

    The exit code is 1 if anything did not happen that was to be shown.
    """
    root = Path(tempfile.mkdtemp(prefix="goalmode-demo-"))
    with Store(str(root / "goals.sqlite")) as store, Stub(closing_after(CLOSES_AT, model)) as stub:
        order = (ContextPolicy.REPLAY, ContextPolicy.REBUILD)
        pursued = {policy: _goal(store, root, policy, stub.base_url) for policy in order}
        if not as_json:
            say(
                f"Two goals, {QUOTA} turns a wakeup, and a model that closes after {CLOSES_AT} closing phrases."
            )
        found = {policy: _pursue(store, goal, quiet=as_json) for policy, goal in pursued.items()}
        rebuilt = pursued[ContextPolicy.REBUILD]
        rejected = sum(w["rejections"] for w in show(store, rebuilt.id)["wakeups"])
        problems = _problems(found, Path(rebuilt.workspace), stub.rejected)
        with Stub(demo_endings.model) as second:
            act = demo_endings.play(store, root, second.base_url, _wake)
            problems += [*act.problems, *(f"an invalid request was sent: {t}" for t in second.rejected)]
    if as_json:
        counted = {p.value: [[w.turns, w.working, w.reason] for w in ws] for p, ws in found.items()}
        endings = {"goal": act.goal.uid, "told": act.told}
        say_json(
            {
                "directory": str(root),
                "wakeups": counted,
                "rejected": rejected,
                "endings": endings,
                "problems": problems,
            }
        )
    else:
        _tell(found, rejected)
        demo_endings.tell(act)
        for problem in problems:
            say(f"This is not what was to be shown: {problem}.")
        _where(store, rebuilt, act.goal)
    return int(bool(problems))


def model(request: Mapping[str, Any], number: int) -> Step:
    """What the model does while it has not been talked into closing. It knows nothing but its request."""
    offered = {known["function"]["name"] for known in request["tools"]}
    if "remember" in offered and len(offered) == 1:  # Settlement: nothing here is worth remembering.
        return text("Nothing to remember.")
    if "shell" not in offered:  # The handoff at the end of a quota: state can be saved, nothing else.
        return tool("update_working_checkpoint", _SAVED)
    called, result = _last_result(request["messages"])
    written = re.search(r"parts: (\d+) of", result)
    parts = int(written.group(1)) if written else 0
    claim = {"status": "success", "summary": f"{PARTS} parts and a report"}
    if called == "complete":  # The host said what is missing.
        report = f"# Report\n\n{PARTS} parts were written to parts.log.\n"
        return tool("write_file", {"path": REPORT, "content": report})
    if called == "write_file":
        return tool("complete", {**claim, "evidence": [REPORT, "parts.log"]})
    if called == "shell" and parts >= PARTS:
        return tool("complete", claim)  # Too early: there is no report yet.
    return tool("shell", {"command": _WORK}, text=_SAID[parts % 2].format(parts + 1))


def _last_result(messages: list[Mapping[str, Any]]) -> tuple[str, str]:
    """The newest tool call's name and what came of it."""
    names: dict[str, str] = {}
    called, result = "", ""
    for message in messages:
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
        if message["role"] == "tool":
            called, result = names[message["tool_call_id"]], str(message["content"])
    return called, result


def _goal(store: Store, root: Path, policy: ContextPolicy, base_url: str) -> Goal:
    workspace = root / policy.value
    workspace.mkdir()
    checks = (f'test "$(wc -l < parts.log)" -eq {PARTS}', f"grep -q '{PARTS} parts' {REPORT}")
    settings = GoalSettings(model="openai:demo", base_url=base_url, max_turns=QUOTA, policy=policy)
    requirements = tuple(Requirement("", check, check) for check in checks)
    spec = GoalSpec(OBJECTIVE, str(workspace), requirements, (REPORT,), settings=settings)
    return create_goal(store, spec)


def _pursue(store: Store, goal: Goal, *, quiet: bool) -> list[Woken]:
    """Wake the goal several times, whatever its back-off says, and count."""
    times = REPLAYED if goal.settings.policy is ContextPolicy.REPLAY else REPLAYED + 2
    for _ in range(times):
        ending = anyio.run(partial(_wake, store, goal))
        if isinstance(ending, Skip):
            break
        if not quiet:
            say(f"  {goal.settings.policy}: {ending.reason} ({ending.detail})")
        if ending.reason is ExitReason.CURRENT_TASK_DONE:
            break
    calls = turns(store, goal)
    return [
        Woken(w["turns"], _working(calls, w["seq"]), w["exit_reason"])
        for w in show(store, goal.id)["wakeups"]
    ]


def _working(calls: list[dict[str, Any]], wakeup: int) -> int:
    apart = ("handoff", "settlement")  # Outside the quota.
    counted = [turn for turn in calls if turn["wakeup"] == wakeup and turn["purpose"] not in apart]
    return sum(bool(turn["calls"]) for turn in counted)


async def _wake(store: Store, goal: Goal) -> Exit | Skip:
    profile = goal_profile(goal, Settings())
    wake = begin_wakeup(store, goal, profile=profile, only_if_due=False)
    if isinstance(wake, Skip):
        return wake
    asked = open_model(profile, None, clock=store.clock)
    try:
        return await run_wakeup(wake, asked)
    finally:
        await asked.aclose()


def _problems(found: Mapping[ContextPolicy, list[Woken]], workspace: Path, invalid: list[str]) -> list[str]:
    """What the demo was to show and did not."""
    replayed, rebuilt = found[ContextPolicy.REPLAY], found[ContextPolicy.REBUILD]
    problems = [f"an invalid request was sent: {text}" for text in invalid]
    if replayed[0].turns != QUOTA or any(w.turns > QUOTA // 2 for w in replayed[1:]) or len(replayed) < 2:
        problems.append("the replayed goal did not collapse")
    if [w.working for w in rebuilt[:3]] != [QUOTA] * 3:
        problems.append("the rebuilt goal did not keep its quota of turns")
    if rebuilt[-1].reason != ExitReason.CURRENT_TASK_DONE or not (workspace / REPORT).is_file():
        problems.append("the rebuilt goal was not completed")
    return problems


def _tell(found: Mapping[ContextPolicy, list[Woken]], rejected: int) -> None:
    say()
    head = ["WAKEUP"]
    for policy in found:
        head += [f"{policy.upper()}: TURNS", "WITH A TOOL", "ENDED"]
    rows = []
    for number in range(max(map(len, found.values()))):
        row = [str(number + 1)]
        for woken in found.values():
            one = woken[number] if number < len(woken) else None
            row += [str(one.turns), str(one.working), one.reason] if one else ["-", "-", "-"]
        rows.append(row)
    table(head, rows)
    say()
    say(f"The host rejected {rejected} false claim(s) of completion: {REPORT} was not there yet.")


def _where(store: Store, goal: Goal, asking: Goal) -> None:
    path = Path(goal.workspace) / REPORT
    say(f"The deliverable that the host checked: {path}")
    say("Look at it with:")
    for command in (
        "list",
        f"show {goal.uid}",
        f"why {goal.uid}",
        f"turns {goal.uid}",
        f"context {goal.uid} --wakeup 2",
        f"questions {asking.uid}",
        f"memory list --workspace {shlex.quote(asking.workspace)}",
    ):
        say(f"  goalmode {command} --store {store.path}")
