"""The parts of a run that look at one turn or one start: beside the floors, at the disk, beside bare Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from goalmode.bench import startup, syncs
from goalmode.bench.floors import KEPT_TURNS, MANY_TURNS
from goalmode.bench.material import LOOK, PUT
from goalmode.bench.measure import Spread, in_child, own_directory
from goalmode.bench.path import NARROW
from goalmode.bench.provider import provider
from goalmode.bench.sizes import Size
from goalmode.bench.table import Grid, Results, shown, span
from goalmode.bench.targets import Figure, figure_of

WARM = 20
PIECES = 4
"""Characters of one event of a stream whose provider sends each token by itself."""

DEFAULT = "goalmode, default window"
LARGER_H = "H, a context as large as the default window's"

Costs = Mapping[str, float]


def turn(size: Size) -> Results:
    """A turn's CPU beside the floors, interleaved; each in a child process of its own."""
    kinds: dict[str, Callable[[], Costs]] = {
        "H": lambda: _floor("H", size.floor_turns),
        "goalmode, window 12k": lambda: _path(size.turns, NARROW),
    }
    if size.floors:
        kinds |= {
            "L": lambda: _bare(size.floor_turns),
            "F": lambda: _floor("F", size.floor_turns),
            LARGER_H: lambda: _floor("H", size.floor_turns, MANY_TURNS),
            DEFAULT: lambda: _path(size.turns, None),
            f"goalmode, window 12k, {PIECES} characters an event": lambda: _path(size.turns, NARROW, PIECES),
        }
    costs: dict[str, list[Costs]] = {name: [] for name in kinds}
    for _ in range(size.repetitions):
        for name, measure in kinds.items():
            costs[name].append(measure())
    floors, ours = costs["H"], costs["goalmode, window 12k"]
    ratios = _ratios(ours, floors)
    rows = [
        (
            name,
            span(Spread.of([one["cpu_ms"] for one in found])),
            shown(Spread.of([one["wall_ms"] for one in found]).median),
            shown(Spread.of(_ratios(found, floors)).median),
        )
        for name, found in costs.items()
    ]
    note = (
        f"A turn: 2.1 KB of arguments, text and result. H is httpx and F http.client, each with {KEPT_TURNS} turns of "
        "context and one durable commit; neither streams. goalmode's tool is a coroutine that only reads. L takes the "
        "same steps as goalmode through the same libraries, with nothing else between them: what no care can go below."
    )
    grid = Grid("A turn beside the floors", ("", "CPU ms", "wall ms", "× H"), rows, note)
    how = f"{size.turns} turns, {size.repetitions} pairs; window 12k beside a floor with as large a context"
    if size.floors:
        larger = Spread.of(_ratios(costs[DEFAULT], costs[LARGER_H])).median
        how += f"; the default window {shown(larger)} × the H of as large a context"
    return Results((figure_of("cpu", Spread.of(ratios), how),), (grid,))


def _ratios(costs: Sequence[Costs], floors: Sequence[Costs]) -> list[float]:
    """CPU beside CPU, pair by pair."""
    return [mine["cpu_ms"] / floor["cpu_ms"] for mine, floor in zip(costs, floors, strict=True)]


def disk(size: Size) -> Results:
    """How often a turn waits for the disk."""
    why = syncs.why_not()
    if why:
        return Results((Figure("syncs_read", None, note=why), Figure("syncs_effect", None, note=why)))
    figures = []
    with ThreadPoolExecutor() as beside:  # What is counted and not timed need not wait for each other.
        counted = beside.map(lambda tool: syncs.syncs(tool, size.syncs), (LOOK, PUT))
    for key, counts in zip(("syncs_read", "syncs_effect"), counted, strict=True):
        usual, more = syncs.per_turn(counts)
        note = f"strace, between one request and the next; in {more} of {len(counts)} turns a checkpoint came beside"
        figures.append(Figure(key, usual, float(min(counts)), float(max(counts)), len(counts), note))
    return Results(figures)


def start(size: Size) -> Results:
    """What starting the command costs."""
    ratio, ours, bare = startup.help_cost(size.starts)
    how = f"{shown(ours.median)} ms beside {shown(bare.median)} ms"
    return Results((figure_of("help", ratio, how),))


def profile(size: Size) -> Results:
    """Where a turn's CPU goes."""
    with own_directory() as directory, provider() as there:
        given: dict[str, Any] = {"base_url": there.base_url, "directory": directory, "turns": size.profiled}
        found = in_child("profiled", window=NARROW, **given)
    note = f"cProfile over {size.profiled} turns at window 12k; code of many small calls looks dearer than it is."
    return Results(
        (),
        (
            Grid("Where a turn's CPU goes", ("", "share"), _shares(found["parts"]), note),
            Grid("The functions in which it is spent", ("", "share"), _shares(found["functions"])),
        ),
    )


def _shares(found: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(name, f"{share:.1%}") for name, share in found.items()]


def _floor(kind: str, turns: int, kept_turns: int = KEPT_TURNS) -> Costs:
    with own_directory() as directory, provider() as there:
        given: dict[str, Any] = {
            "base_url": there.base_url,
            "directory": directory,
            "turns": turns,
            "warm": kept_turns,
        }
        return in_child("floor", kind=kind, kept_turns=kept_turns, **given)


def _bare(turns: int) -> Costs:
    with own_directory() as directory, provider() as there:
        given: dict[str, Any] = {"base_url": there.base_url, "directory": directory, "turns": turns}
        return in_child("bare", warm=KEPT_TURNS, **given)


def _path(turns: int, window: int | None, pieces: int = 0) -> Costs:
    with own_directory() as directory, provider("--pieces", str(pieces)) as there:
        given: dict[str, Any] = {
            "base_url": there.base_url,
            "directory": directory,
            "turns": turns,
            "warm": WARM,
        }
        return in_child("turns", window=window, **given)
