"""`report`: one report of a goal, complete in itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from goalmode.cli.files import write_new
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import exactly, json_text, remark, say_json
from goalmode.cli.stores import reading
from goalmode.inspection import report as reports
from goalmode.inspection.html import html
from goalmode.inspection.markdown import markdown
from goalmode.inspection.report_document import document


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--md", "form", flag_value="md", default="md", help="As Markdown. [default]")
@click.option("--html", "form", flag_value="html", help="As one HTML page without scripts.")
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path),
              help="A new file, for its user alone. [default: standard output]")  # fmt: skip
@common
def report(goal_id: str, form: str, output: Path | None, common: Common) -> int:
    """Write one report: objective, contract with evidence, deliverables with hashes, wakeups with reasons, spend by
    purpose, failed approaches, what is open, next steps. With --json as a JSON value.
    """
    with reading(common, goal_id) as (store, goal):
        found = reports.report(store, goal.id)
    if common.json and output is None:
        say_json(found)
        return 0
    text = json_text(found) + "\n" if common.json else _written(found, form)
    if output is None:
        exactly(text)
        return 0
    write_new(output, text)
    if not common.quiet:
        remark(f"{goal.uid}: reported to {output}")
    return 0


def _written(found: Mapping[str, Any], form: str) -> str:
    return html(document(found)) if form == "html" else markdown(document(found))
