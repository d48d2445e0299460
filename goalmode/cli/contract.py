"""`check` and `accept`: what the host finds of a contract just now, and what only a person can say of it."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial

import anyio
import click

from goalmode.cli import contract_page, secrets
from goalmode.cli.contract_options import resting
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import remark, say, say_json
from goalmode.cli.stores import changing, command_here
from goalmode.configured import for_checks
from goalmode.domain.exits import GoalStatus
from goalmode.domain.text import one_line
from goalmode.orchestrator.accept import Accepted, accept
from goalmode.orchestrator.check import Checked, check_contract


@click.command("check")
@click.argument("goal_id", metavar="ID", type=UTF8)
@common
def check(goal_id: str, common: Common) -> int:
    """Run the contract's checks now, without a model. Exits 0 if all hold, else 1."""
    with changing(common, goal_id) as (store, goal):
        environment, redact, confinement = for_checks(store, goal, common.config, os.environ)
        secrets.known().add(redact)
        run = partial(
            check_contract,
            store,
            goal,
            environment=environment,
            redact=secrets.known(),
            confinement=confinement,
        )
        with closing(confinement):
            found = anyio.run(run)
    if common.json:
        say_json(_described(found))
    elif not common.quiet:
        contract_page.checked(found)
        if found.goal.bare:
            remark(resting(found.goal))
    return 0 if found.holds else 1


@click.command("accept")
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.argument("names", metavar="REQ|PATH", nargs=-1, required=True, type=UTF8)
@common
def accept_command(goal_id: str, names: tuple[str, ...], common: Common) -> int:
    """Accept what only a person can: a requirement (R3), or a protected file as it is now."""
    with changing(common, goal_id) as (store, goal):
        found = accept(store, goal, names)
    if common.json:
        say_json(
            {
                "id": found.goal.uid,
                "status": found.goal.status.value,
                "accepted": list(found.names),
                "already": list(found.already),
                "open": [requirement.id for requirement in found.open],
            }
        )
    elif not common.quiet:
        _tell(found, common)
    return 0


def _tell(found: Accepted, common: Common) -> None:
    uid = found.goal.uid
    for name in found.names:
        state = "had been accepted already" if name in found.already else "accepted"
        say(f"{uid}: {one_line(name)}: {state}")
    if found.open:
        labels = ", ".join(requirement.id for requirement in found.open)
        remark(f"{labels} {'waits' if len(found.open) == 1 else 'wait'} for a person still.")
    elif found.goal.status is GoalStatus.ACTIVE:
        remark(f"To run it: {command_here(common, f'goalmode run {uid}')}")


def _described(found: Checked) -> dict[str, object]:
    return {
        "id": found.goal.uid,
        "holds": found.holds,
        "rests_on": resting(found.goal),
        "checks": [
            {
                "subject": line.subject,
                "kind": line.kind,
                "text": line.text,
                "holds": line.holds,
                "exit_code": line.exit_code,
                "detail": line.detail,
                "tail": line.tail,
            }
            for line in found.lines
        ],
    }
