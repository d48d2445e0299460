"""How much is measured: everything, or what is worth a minute every day."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """How much a run measures.

    Attributes:
        sections: by name, `goalmode.bench.sections`.
        repetitions: of a turn beside the floors. turns: of goalmode in each, floor_turns: of a floor.
        floors: whether F, larger contexts and finer streams are measured beside the ratio that has a target.
        syncs: turns that are traced.
        starts: of `--help`.
        steps: turns of the long goal after which it is looked at; the last is how long it is.
        visits: to each of them, in which `later` turns and `resumes` resumes are measured.
        tokens: other goals whose tokens are counted, as turns and work window; None is the default window.
        crowds: goals of a store. at_once: goals in one process, each of `shared` turns.
        profiled: turns that are profiled.
    """

    sections: tuple[str, ...]
    repetitions: int
    turns: int
    floor_turns: int
    floors: bool
    syncs: int
    starts: int
    steps: tuple[int, ...]
    visits: int
    later: int
    resumes: int
    tokens: tuple[tuple[int, int | None], ...]
    crowds: tuple[int, ...]
    at_once: tuple[int, ...]
    shared: int
    profiled: int


FULL = Size(
    sections=("turn", "disk", "start", "long", "tokens", "crowd", "profile"),
    repetitions=5,
    turns=150,
    floor_turns=400,
    floors=True,
    syncs=100,
    starts=15,
    steps=(10, 100, 1_000, 10_000),
    visits=5,
    later=100,
    resumes=15,
    tokens=((180, 12_000), (180, None), (1_000, 12_000), (1_000, None)),
    crowds=(100, 10_000, 100_000),
    at_once=(1, 8, 32),
    shared=40,
    profiled=200,
)

QUICK = Size(
    sections=("turn", "disk", "start", "long", "tokens"),
    repetitions=2,
    turns=40,
    floor_turns=100,
    floors=False,
    syncs=8,
    starts=5,
    steps=(10, 1_000),
    visits=1,
    later=20,
    resumes=5,
    tokens=((180, 12_000),),
    crowds=(),
    at_once=(),
    shared=0,
    profiled=100,
)
