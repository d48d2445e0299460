"""What inspection found, as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from goalmode.cli import asked, contract_page, sandbox_options, sources
from goalmode.cli.options import Common
from goalmode.cli.output import pairs, say, table
from goalmode.cli.stores import command_here
from goalmode.domain.cost import dollars
from goalmode.domain.text import counted, one_line
from goalmode.inspection.limits import limits_told
from goalmode.inspection.listing import UNREADABLE

Row = Mapping[str, Any]

TAIL_LINES = 12
"""Lines of a failed check's output that `why` shows, the last ones."""


def goals(found: Sequence[Row], now: datetime) -> None:
    """The table of `list`."""
    table(["ID", "STATUS", "TURNS", "LAST ENDING", "NEXT", "OBJECTIVE"], [_line(g, now) for g in found])


def _line(goal: Row, now: datetime) -> list[str]:
    if goal["status"] == UNREADABLE:
        return [goal["id"], UNREADABLE, "", "", "", goal["problem"]]
    waits = goal["status"] == "ACTIVE" and not goal["running"]
    return [
        goal["id"],
        "running" if goal["running"] else goal["status"],
        str(goal["turns"]),
        goal["last_exit_reason"] or "-",
        _until(goal["next_wakeup_at"], now) if waits else "-",
        one_line(goal["title"], 80),
    ]


def goal(found: Row) -> None:
    """The page of `show`."""
    state = f"{found['status']}, running ({found['owner']})" if found["running"] else found["status"]
    rows = [("goal", found["id"]), ("status", state)]
    rows += [("because", found["status_reason"])] * bool(found["status_reason"])
    if found["status"] == "ACTIVE" and not found["running"]:
        rows.append(("next wakeup", f"{_time(found['next_wakeup_at'])} ({found['wake_reason']})"))
    settings = found["settings"]
    rows += [
        ("workspace", found["workspace"]),
        ("model", settings["model"] or "the configured default"),
        ("movement", f"{found['movement']}, of the workflow {settings['workflow']['name']}"),
        ("policy", f"{found['policy']}, {counted(settings['max_turns'], 'turn')} a wakeup"),
        *_servers(settings["mcp"]),
        ("sandbox", sandbox_options.named(settings)),
        ("spent", _spent(found["spent"])),
        *_spends(found["spend_by_purpose"]),
        ("limits", limits_told(found["limits"])),
        ("revision", str(found["objective_revision"])),
        ("objective", found["objective"]),
    ]
    pairs(rows)
    contract_page.contract(found)
    _work(found)
    _obstacles(found)
    _asked(found)
    sources.listed(found["wake_sources"])
    if found["wakeups"]:
        say()
        _wakeups(found["wakeups"])
        older = found["wakeups_in_all"] - len(found["wakeups"])
        if older:
            more = f"goalmode timeline {found['id']} --offset {len(found['wakeups'])}"
            say(f"{counted(older, 'older wakeup')}: {more}")


def _servers(chosen: Sequence[Row] | None) -> list[tuple[str, str]]:
    """The goal's own MCP servers; where it names none, the configuration says which there are."""
    if chosen is None:
        return []
    told = [f"{one['name']}: {one['address'] or 'of goalmode.toml'}" for one in chosen]
    return [("MCP servers", "\n".join(told) or "none")]


def _obstacles(found: Row) -> None:
    if found["obstacles"]:
        say("\nObstacles", strong=True)
        for o in found["obstacles"]:
            stands = f", in the way of {o['requirement']}" if o["requirement"] else ""
            met = ", ".join(map(str, o["wakeups"])) or "none since it was resumed"
            say(f"  {o['id']}{stands}: {one_line(o['text'])} (met in wakeups: {met})")


def _work(found: Row) -> None:
    saved = found["checkpoint"]
    taken_over = saved["provenance"] == "tool"
    if saved["wakeup"] or (taken_over and saved["key_info"]):
        told = "taken over before its first wakeup" if taken_over else f"wakeup {saved['wakeup']}"
        say(f"\nLast checkpoint, {told}, in the model's words", strong=True)
        steps = "\n".join(f"- {step}" for step in saved["next_steps"])
        rows = [("key info", saved["key_info"]), ("summary", saved["summary"]), ("next steps", steps)]
        pairs([(f"  {name}", text) for name, text in rows if text])
    if found["work_items"]:
        say("\nWork items", strong=True)
        for item in found["work_items"]:
            changed = f" (changed since: {one_line(', '.join(item['changed']))})" if item["changed"] else ""
            say(f"  {item['id']}  {item['kind']}, {item['status']}: {one_line(item['text'])}{changed}")


def _asked(found: Row) -> None:
    if found["questions"]:
        say("\nQuestions", strong=True)
        asked.listed([{"goal": found["id"], **question} for question in found["questions"]])


def _wakeups(found: Sequence[Row]) -> None:
    head = ["WAKEUP", "ENDED", "TURNS", "TOKENS", "RECOVERED", "CONTEXT", "CLOSING", "SANDBOX", "DETAIL"]
    table(
        head,
        [
            [
                str(w["seq"]),
                w["exit_reason"] or f"running ({w['owner']})",
                str(w["turns"]),
                f"{w['tokens']:,}",
                str(w["recoveries"]),
                "-" if w["context_tokens"] is None else f"{w['context_tokens']:,}",
                "-" if w["completion_phrases"] is None else str(w["completion_phrases"]),
                w["sandbox"],
                one_line(w["exit_detail"], 120),
            ]
            for w in found
        ],
    )


def turns(found: Sequence[Row]) -> None:
    """The list of `turns`: one line a model call, one a tool call."""
    for turn in found:
        state = "" if turn["state"] in ("done", "open") else f" ({turn['state']})"
        usage = turn["usage"]
        tokens = counted(usage["tokens"], "token") + (" (estimated)" if usage["estimated"] else "")
        cost = "" if turn["price"] is None and not turn["cost_micro"] else f"  {dollars(turn['cost_micro'])}"
        ending = f"{turn['stop_reason']}{_raw(turn)}{state}"
        say(f"{turn['wakeup']}.{turn['seq']}  {turn['purpose']}  {ending}  {tokens}{cost}")
        for fix in turn["repairs"]:
            say(f"    repaired: {one_line(fix['kind'])} message {fix['message']}: {one_line(fix['why'])}")
        if turn.get("text"):
            _quoted(turn["text"])
        for call in turn["calls"]:
            code = "" if call["exit_code"] is None else f", exit {call['exit_code']}"
            outcome = call["outcome"] or "running"
            brief = f" {one_line(call['brief'])}" if call["brief"] else ""
            again = f" ({call['in_a_row']} times in a row)" if call["in_a_row"] > 1 else ""
            say(f"    {call['tool']}{brief}: {outcome}{code}, {call['milliseconds']} ms{again}")
            for name in ("arguments", "result"):
                if call.get(name):
                    say(f"      {name}:")
                    _quoted(call[name])


def _raw(turn: Row) -> str:
    """The provider's own word for the ending, and that of the server behind it."""
    words = [one_line(word, 40) for word in (turn["stop_raw"], turn["stop_native"]) if word]
    return f" ({', '.join(words)})" if words else ""


def _quoted(text: str) -> None:
    for line in text.split("\n") if text else ():
        say(f"        {line}".rstrip())


def why(found: Row, common: Common) -> None:
    """The page of `why`."""
    ending = found["ending"]
    if ending is None:
        say(f"Goal {found['id']} has not been woken yet; it is {found['status']}.")
    elif ending["exit_reason"] is None:
        say(f"Wakeup {ending['wakeup']} of goal {found['id']} runs, by {found['owner']}.")
    else:
        say(
            f"Wakeup {ending['wakeup']} of goal {found['id']} ended: {one_line(ending['sentence'])}",
            strong=True,
        )
        pairs([(f"  {name}", _fact(value)) for name, value in ending["facts"].items() if name != "traceback"])
        recovered = f"{counted(ending['recoveries'], 'recovery prompt')} of {ending['max_recoveries']}"
        rejected = counted(ending["rejections"], "rejected claim")
        say(f"  after {counted(ending['turns'], 'turn')}, {recovered}, {rejected}, {_progress(ending)}")
        if ending["last_turn"]:
            say(f"  last reply: {_last_turn(ending)}")
        for server in ending["servers"]:
            if server["problem"] or server["left_out"]:
                say(f"  {one_line(server['told'])}")
        for check in ending["checks"]:
            code = "" if check["exit_code"] is None else f" (exit {check['exit_code']})"
            say(f"  check {one_line(check['subject'])}: {'holds' if check['passed'] else 'fails'}{code}")
            if not check["passed"]:
                _quoted("\n".join(check["tail"].strip().splitlines()[-TAIL_LINES:]))
        if ending["facts"].get("traceback"):
            say(str(ending["facts"]["traceback"]))
    say(
        f"The goal is {found['status']}"
        + (f": {one_line(found['status_reason'])}" if found["status_reason"] else ".")
    )
    if found["streak"]:
        say(f"Bad endings in a row: {found['streak']} of {found['streak_limit']} allowed.")
        for w in found["streak_wakeups"]:
            after = f"{counted(w['turns'], 'turn')}, {_progress(w)}"
            told = f"  wakeup {w['wakeup']}: {w['exit_reason']} after {after}"
            say(told + (f": {one_line(w['detail'], 200)}" if w["detail"] else ""))
    _going_on(found, common)


def _progress(wakeup: Row) -> str:
    """How many signs of progress a wakeup gave, and of what."""
    of = ", ".join(f"{kind} {marks}" for kind, marks in wakeup["progress_by"].items() if marks)
    return counted(wakeup["progress"], "sign of progress", "signs of progress") + (f" ({of})" if of else "")


def _last_turn(ending: Row) -> str:
    """The model call that the ending followed, with the provider's own words for how it stopped."""
    turn = ending["last_turn"]
    called = ", ".join(f"{one_line(c['tool'], 40)}: {c['outcome'] or 'running'}" for c in turn["calls"])
    detail = f": {one_line(turn['stop_detail'], 200)}" if turn["stop_detail"] else ""
    asked = f"; it called {called}" if called else "; no tool call"
    whose = f", {one_line(turn['model'], 80)}" if turn["model"] else ""
    where = f"turn {ending['wakeup']}.{turn['seq']} ({turn['purpose']}{whose})"
    return f"{where} {turn['stop_reason']}{_raw(turn)}{detail}{asked}"


def _going_on(found: Row, common: Common) -> None:
    if found["questions"]:
        asked.waiting(found["questions"])
    if found["skip"] is None:
        say("It would be woken now.")
    else:
        say(f"It would not be woken now ({found['skip']['reason']}): {one_line(found['skip']['detail'])}")
    sources.listed(found["wake_sources"])
    say(f"What makes it run again: {one_line(found['needs'])}.")
    if found["remedy"]:
        say(f"To go on: {command_here(common, found['remedy'])}")
    if found["sandbox"]:
        say(sandbox_options.ran_in(found["sandbox"], network=found["network"]))
    if found["ending"] and any(server["ran"] for server in found["ending"]["servers"]):
        say("Its MCP servers ran as you, in no sandbox: the contract is not protected from them.")


def _fact(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(one_line, map(str, value))) or "-"
    return "-" if value is None else one_line(str(value))


def _spent(spent: Row) -> str:
    amounts = ", ".join(counted(spent[f"{noun}s"], noun) for noun in ("turn", "wakeup", "token"))
    return f"{amounts}, {spent['active_seconds']:,.1f} s of work{_cost(spent)}"


def _spends(by_purpose: Row) -> list[tuple[str, str]]:
    """What was spent on what, where it was not all spent on work."""
    lines = [
        f"{purpose.replace('_', '-')}: {counted(spend['calls'], 'call')}, "
        f"{counted(spend['tokens'], 'token')}{_cost(spend)}"
        for purpose, spend in by_purpose.items()
    ]
    return [("by purpose", "\n".join(lines))] if set(by_purpose) - {"work"} else []


def _cost(spent: Row) -> str:
    """What it cost, where that is known."""
    return f", {dollars(spent['cost_micro'])}" if spent["cost_micro"] else ""


def _time(iso: str | None) -> str:
    """A stored time in this machine's zone."""
    if iso is None:
        return "-"
    return datetime.fromisoformat(iso).astimezone().isoformat(sep=" ", timespec="seconds")


def _until(iso: str | None, now: datetime) -> str:
    """How long from now a stored time is."""
    seconds = 0.0 if iso is None else (datetime.fromisoformat(iso) - now).total_seconds()
    if seconds <= 0:
        return "now"
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"in {seconds / size:.0f} {unit}"
    return f"in {seconds:.0f} s"
