"""The parts of a run that look at whole goals: a very long one, their tokens, and very many of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goalmode.bench import startup
from goalmode.bench.long import store_at
from goalmode.bench.material import mean_payload
from goalmode.bench.measure import MEBIBYTE, Spread, in_child, own_directory
from goalmode.bench.path import NARROW
from goalmode.bench.provider import provider
from goalmode.bench.sizes import Size
from goalmode.bench.table import Grid, Results, shown, span
from goalmode.bench.targets import Figure, figure_of
from goalmode.context.overflow.sawtooth import MAX_WINDOW
from goalmode.scheduler.daemon import POLL_SECONDS

Costs = Mapping[str, float]


def long(size: Size) -> Results:
    """One goal over very many turns: flat cost, flat resume, bytes, memory, tokens and memory of facts."""
    with own_directory() as directory:
        with provider("--count", str(NARROW), "--facts") as there:
            given: dict[str, Any] = {"base_url": there.base_url, "directory": directory, "steps": size.steps}
            found = in_child("pursue", window=NARROW, **given)
        later, resumes = _later(size, directory)
    last = size.steps[-1]
    figures = [
        _ratio("flat", later, size.steps, f"{last:,} ÷ 10 turns, {size.later} turns each, interleaved"),
        _ratio("resume", resumes, size.steps, f"CPU; {last:,} ÷ 10 turns; {size.resumes} resumes each"),
        *_of_the_goal(found, last),
    ]
    rows = [
        (
            f"{step:,}",
            span(Spread.of([one["cpu_ms"] for one in later[step]])),
            span(Spread.of([one["cpu_ms"] for one in resumes[step]])),
            _pages(resumes[step]),
            shown(Spread.of([one["memory"] for one in later[step]]).median / MEBIBYTE),
            shown(found["steps"][str(step)]["stored"]),
        )
        for step in size.steps
    ]
    head = (
        "prior turns",
        "CPU ms per turn",
        "CPU ms to the first request",
        "pages read",
        "peak memory, MB",
        "bytes stored per turn",
    )
    note = "All prior turns were really run. Pages are what a cold connection reads to load the goal's state."
    return Results(figures, (Grid("A goal that has gone on for long", head, rows, note),))


def _of_the_goal(found: Mapping[str, Any], turns: int) -> list[Figure]:
    """What one long goal says by itself; where it is no longer than that, also of 1,000 turns."""
    bare, payload = startup.bare_memory(), mean_payload()
    ledger, at_1000 = found["ledger"], found["steps"]["1000"]
    written = at_1000.get("written")
    bytes_by = "by /proc/self/io" if written is not None else "not measured: there is no /proc/self/io here"
    sent = f"in {turns:,} turns, {ledger['requests']:,} requests; the largest has {ledger['largest']:,.0f} tokens"
    repeated = f"{turns:,} turns; as a median of requests {ledger['median_share']:.1%}"
    memory = (found["memory"] - bare) / MEBIBYTE
    return [
        Figure("stored", at_1000["stored"] / payload, note=f"the whole file; P is {payload:,.0f} bytes"),
        Figure("written", None if written is None else written / payload, note=bytes_by),
        Figure("memory", memory, note=f"after {turns:,} turns; {_before_any_work(bare)}"),
        Figure("over", ledger["over"], note=sent),
        Figure("recall", found["recalled"], note=f"after {turns:,} turns, window 12k"),
        Figure("prefix", ledger["share"] * 100, note=repeated),
        *([_tokens(turns, ledger)] if turns == 1_000 else []),
    ]


def _before_any_work(bare: int) -> str:
    """Whose memory it is that a goal has before its first turn."""
    with_libraries = in_child("libraries")
    imported, counting = (with_libraries[name] / MEBIBYTE for name in ("imported", "counting"))
    alone = bare / MEBIBYTE
    return (
        f"bare python has {alone:.1f} MB, the libraries add {imported - alone:.0f} before any code of ours, "
        f"and the vocabulary {counting - imported:.0f} while it is loaded"
    )


def tokens(size: Size) -> Results:
    """Input tokens beside full replay, what caching makes of them, and whether anything was forgotten for it."""
    figures, rows = [], []
    for turns, window in size.tokens:
        found = _counted(turns, window)
        ledger = found["ledger"]
        if window == NARROW:
            figures.append(_tokens(turns, ledger))
            figures.append(Figure("recall", found["recalled"], note=f"after {turns:,} turns, window 12k"))
        figures.append(Figure("over", ledger["over"], note=f"in {turns:,} turns, window {_window(window)}"))
        rows.append(
            (
                f"{turns:,}, {_window(window)}",
                f"{ledger['tokens']:,.0f}",
                f"{ledger['replay_tokens']:,.0f}",
                shown(ledger["tokens"] / ledger["replay_tokens"]),
                shown(ledger["tokens"] / _as_many(turns, ledger)),
                f"{ledger['share']:.1%}",
                shown(ledger["cost"] / ledger["replay_cost"]),
                f"{found['recalled']} of 50",
            )
        )
    head = (
        "turns, window",
        "input tokens",
        "full replay",
        "÷",
        "÷ as many turns",
        "prefix repeated",
        "cost ÷ replay's",
        "facts recalled",
    )
    note = (
        "Full replay is counted, not run: the first request and every later turn of work in each request, without what "
        "goalmode asks to be saved; beside it, a replay of as many turns that all work. "
        "Cost: a token that the provider has cached costs a tenth, on both sides."
    )
    return Results(figures, (Grid("Input tokens", head, rows, note),) if rows else ())


def crowd(size: Size) -> Results:
    """Stores of many goals, and many goals in one process."""
    return Results(
        (), [*([_among(size)] if size.crowds else []), *([_together(size)] if size.at_once else [])]
    )


def _among(size: Size) -> Grid:
    names = {
        "due": "find what is due",
        "claim": "claim and close",
        "list": "list 50",
        "show": "show",
        "look": "one look of serve",
    }
    with own_directory() as directory:
        found = {count: in_child("among", directory=directory, count=count) for count in size.crowds}
    rows = [
        (f"{count:,}", *(shown(costs[name]) for name in names), f"{costs['look'] / 1000 / POLL_SECONDS:.2%}")
        for count, costs in found.items()
    ]
    note = (
        "The goals' rows are copies of one that was created: `show` says the same of both, or the run fails. All are "
        f"due, but for serve, which looks every {POLL_SECONDS:g} s and of more than 1,000 goals finds 1,000 due."
    )
    head = ("goals", *names.values(), "of a core, idle")
    return Grid("A store of many goals, CPU ms", head, rows, note)


def _together(size: Size) -> Grid:
    with own_directory() as directory, provider() as there:
        given: dict[str, Any] = {"base_url": there.base_url, "directory": directory, "turns": size.shared}
        shared = {count: in_child("together", count=count, **given) for count in size.at_once}
    rows = [
        (str(n), shown(one["cpu_ms"]), shown(one["wall_ms"]), shown(one["memory"] / MEBIBYTE))
        for n, one in shared.items()
    ]
    head = ("goals", "CPU ms per turn", "wall ms per turn", "peak memory, MB")
    note = f"{size.shared} turns each, claiming and closing included."
    return Grid("Goals at once in one process", head, rows, note)


def _later(size: Size, directory: str) -> tuple[dict[int, list[Costs]], dict[int, list[Costs]]]:
    """What turns and resumes cost behind each step, interleaved."""
    later: dict[int, list[Costs]] = {step: [] for step in size.steps}
    resumes: dict[int, list[Costs]] = {step: [] for step in size.steps}
    with provider() as there:
        for _ in range(size.visits):
            for step in size.steps:
                given: dict[str, Any] = {"base_url": there.base_url, "store": str(store_at(directory, step))}
                later[step].append(in_child("going_on", turns=size.later, **given))
                resumes[step].append(in_child("resumed", times=size.resumes, **given))
    return later, resumes


def _pages(costs: list[Costs]) -> str:
    found = [cost["pages"] for cost in costs if "pages" in cost]
    return shown(Spread.of(found).median) if found else "not measured"


def _counted(turns: int, window: int | None) -> dict[str, Any]:
    with own_directory() as directory, provider("--count", str(window or MAX_WINDOW), "--facts") as there:
        given: dict[str, Any] = {
            "base_url": there.base_url,
            "directory": directory,
            "steps": [turns],
            "window": window,
        }
        return in_child("pursue", **given)


def _as_many(turns: int, ledger: Mapping[str, float]) -> float:
    """Input tokens of a replay of so many turns, none of which only saves."""
    return turns * ledger["opening"] + ledger["turn"] * turns * (turns - 1) / 2


def _tokens(turns: int, ledger: Mapping[str, float]) -> Figure:
    ratio = ledger["tokens"] / ledger["replay_tokens"]
    cached = ledger["cost"] / ledger["replay_cost"]
    return Figure(
        f"tokens_{turns}", ratio, note=f"with cached input at a tenth: cost {cached:.2f} of full replay's"
    )


def _ratio(key: str, costs: Mapping[int, list[Costs]], steps: tuple[int, ...], how: str) -> Figure:
    """The last step's CPU beside the first one's, pair by pair."""
    pairs = zip(costs[steps[-1]], costs[steps[0]], strict=True)
    return figure_of(key, Spread.of([last["cpu_ms"] / first["cpu_ms"] for last, first in pairs]), how)


def _window(window: int | None) -> str:
    return "default" if window is None else f"{window // 1000}k"
