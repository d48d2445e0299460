"""Does replayed completion prose make this model stop? One page: plan what is asked, ask what is not known yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from goalmode.domain.cost import Price
from goalmode.domain.messages import Usage
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.evals.design import Cell, Design
from goalmode.evals.measure import Method, Open, Way, ask, find_way
from goalmode.evals.prompts import Prompt, Renderer, TooLong
from goalmode.evals.results import Results

Asked = Callable[[Cell, int, int], None]
"""Called after each cell with how many are known, and how many there are."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Attributes:
    asked: every cell that fits into the model's window, with what is sent for it.
    too_long: the others, with the reason.
    """

    asked: Sequence[tuple[Cell, Prompt]]
    too_long: dict[Cell, str] = field(default_factory=dict)

    def open(self, results: Results) -> list[tuple[Cell, Prompt]]:
        """What is not known yet.

        Raises:
            BadInput: something was asked in other words.
        """
        return [(cell, prompt) for cell, prompt in self.asked if not results.is_done(cell, prompt)]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an evaluation costs at most, caches left out. `micro` is micro-dollars, None without a price."""

    requests: int
    input: int
    output: int
    micro: int | None


def plan(design: Design, renderer: Renderer) -> Plan:
    """Render everything that is to be asked."""
    asked: list[tuple[Cell, Prompt]] = []
    too_long: dict[Cell, str] = {}
    for cell in design.cells():
        try:
            asked.append((cell, renderer.prompt(cell)))
        except TooLong as why:
            too_long[cell] = str(why)
    return Plan(asked, too_long)


def estimate(todo: Sequence[tuple[Cell, Prompt]], way: Way, price: Price | None) -> Estimate:
    """What asking `todo` costs at most."""
    read = way.samples * sum(prompt.tokens for _, prompt in todo)
    requests = way.samples * len(todo)
    written = way.answer_tokens * requests
    micro = None if price is None else price.at_most(Usage(input=read, output=written))
    return Estimate(requests, read, written, micro)


async def evaluate(
    planned: Plan, results: Results, open: Open, *, tops: Sequence[int], wanted: Method | None, fallback: Way,
    told: Asked
) -> None:  # fmt: skip
    """Ask every cell that is not known yet. Whatever ends this, each answer is in the file when the next is asked for.

    Raises:
        ModelError: the provider failed, after the retries. BadInput: see `find_way` and `ask`.
    """
    todo = planned.open(results)
    if not todo:
        return
    if results.way is None:
        results.start(await find_way(open, tops, wanted, fallback, todo[0][1].messages))
    assert results.way is not None
    total = len(planned.asked)
    async with aclosing(open(results.way.top)) as model:
        for number, (cell, prompt) in enumerate(todo, 1):
            try:
                results.add(cell, prompt, await ask(model, prompt.messages, results.way))
            except ModelError as error:
                if error.kind not in (ErrorKind.CONTEXT_OVERFLOW, ErrorKind.REQUEST_TOO_LARGE):
                    raise
                results.add_too_long(cell, prompt, error.message)
            told(cell, total - len(todo) + number, total)


def margins(planned: Plan, results: Results) -> dict[Cell, float]:
    """The margins that are known, of the cells of this plan."""
    assert results.way is not None
    found: dict[Cell, float] = {}
    for cell, _ in planned.asked:
        answer = results.answers.get(cell.key)
        margin = None if answer is None else answer.margin(results.way.method)
        if margin is not None:
            found[cell] = margin
    return found
