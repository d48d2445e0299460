"""`eval pollution`: say what it costs, ask, tell what is shown."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import click

from goalmode.cli import pollution_told, secrets
from goalmode.cli.options import UTF8, model_options, refuse_credentials
from goalmode.cli.output import complain, remark, say, say_json
from goalmode.configured import user_prompts
from goalmode.credentials import credentials
from goalmode.domain.clock import SystemClock
from goalmode.domain.profile import ModelProfile
from goalmode.errors import BadInput, ModelError
from goalmode.evals import plot
from goalmode.evals.design import QUICK_GOALS, QUICK_TURNS, Design
from goalmode.evals.measure import TOPS, Method, Open, Way
from goalmode.evals.pollution import Plan, evaluate, plan
from goalmode.evals.prompts import Renderer
from goalmode.evals.report import Report, in_json, report
from goalmode.evals.results import FILE, Results, Subject
from goalmode.model.port import OpenModel
from goalmode.settings import api_key, load_settings, resolve_profile
from goalmode.wiring import open_first_token

SAMPLES = 10
ANSWER_TOKENS = 16
SEED = 7


@click.command(epilog="Ctrl-C ends it with what is known; the same command goes on from there.")
@model_options
@click.option("--config", metavar="FILE", type=click.Path(path_type=Path), help="The goalmode.toml to use.")
@click.option(
    "--out", metavar="DIR", type=UTF8, help="Where the answers and the plot go. [default: pollution-MODEL]"
)
@click.option("--quick", is_flag=True, help="Half of the goals, 0, 5 and 20 turns.")
@click.option(
    "--method",
    type=click.Choice(["auto", *(method.value for method in Method)]),
    default="auto",
    show_default=True,
    help="Log-probabilities, or answers sampled at temperature 1.",
)
@click.option(
    "--samples",
    type=click.IntRange(1, 1000),
    default=SAMPLES,
    show_default=True,
    help="Answers of one cell where they are sampled.",
)
@click.option(
    "--answer-tokens",
    type=click.IntRange(1, 32_000),
    default=ANSWER_TOKENS,
    show_default=True,
    help="Allowance of a sampled answer; a model that reasons first needs more.",
)
@click.option("--seed", type=int, default=SEED, show_default=True, help="Of the intervals' resamples.")
@click.option("--yes", "-y", is_flag=True, help="Start without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing but the result.")
def pollution(
    model: str | None, base_url: str | None, api_key_env: str | None, config: Path | None, out: str | None,
    quick: bool, method: str, samples: int, answer_tokens: int, seed: int, yes: bool, as_json: bool, quiet: bool,
) -> int:  # fmt: skip
    """Find out whether replayed completion prose makes a model stop.

    It is asked to choose between going on and ending: behind claims of completion (A), behind as many turns in
    progress of the same length (C), behind goalmode's rebuilt context (B) and behind neither (N).
    """
    secrets.learn(config)
    settings = load_settings(config, os.environ)
    refuse_credentials(base_url or "")
    profile = resolve_profile(settings, model or "", base_url or "", api_key_env or "")
    secrets.known().add(credentials(settings, os.environ, profile).redact)
    key = api_key(profile, os.environ)
    design = Design(turns=QUICK_TURNS, goals=QUICK_GOALS) if quick else Design()
    planned = plan(design, Renderer(profile, user_prompts(settings), answer_tokens))
    if not planned.asked:
        raise BadInput("window", profile.window, next(iter(planned.too_long.values()), "a larger window"))
    fallback = Way(Method.SAMPLES, 0, samples, answer_tokens)
    subject = _subject(profile, method, fallback)
    path = Path(out if out is not None else f"pollution-{_slug(profile.spec)}") / FILE
    with Results(path, subject) as results:
        if planned.open(results):
            pollution_told.costs(planned, results, profile, fallback, method, quiet=quiet)
            if not yes:
                _confirm()
        code = _ask(
            planned, results, profile, key, fallback, None if method == "auto" else Method(method), quiet
        )
        if code:
            return code
        made = report(planned, results, seed=seed)
    _tell(made, profile, path.parent, as_json=as_json, quiet=quiet)
    return 0


def _subject(profile: ModelProfile, method: str, fallback: Way) -> Subject:
    parts = urlsplit(profile.base_url)
    host = parts.netloc.rpartition("@")[2]
    return Subject(
        profile.name,
        profile.wire,
        f"{parts.scheme}://{host}{parts.path}",
        profile.temperature,
        method,
        fallback.samples,
        fallback.answer_tokens,
    )


def _slug(spec: str) -> str:
    return re.sub(r"[^\w.-]+", "-", spec)[:60]


def _confirm() -> None:
    """Ask whether to start.

    Raises:
        click.UsageError: there is nobody to ask. click.Abort: no.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("this asks before it starts, and there is no terminal: give --yes.")
    click.confirm("Start?", default=True, abort=True, err=True)


def _ask(
    planned: Plan, results: Results, profile: ModelProfile, key: str | None, fallback: Way, wanted: Method | None,
    quiet: bool,
) -> int:  # fmt: skip
    """Ask what is not known yet; returns the exit code, and says how to go on where it is not 0."""
    run = partial(
        evaluate,
        planned,
        results,
        _opener(profile, key),
        tops=TOPS if profile.wire == "openai" else (),
        wanted=wanted,
        fallback=fallback,
        told=pollution_told.progress(quiet=quiet),
    )
    try:
        anyio.run(run)
    except KeyboardInterrupt:
        complain(f"stopped. {_known(planned, results)}")
        return 130
    except ModelError as error:
        complain(f"{error}. {_known(planned, results)}")
        return error.exit_code
    return 0


def _known(planned: Plan, results: Results) -> str:
    known = len(planned.asked) - len(planned.open(results))
    stored = f"{known} of {len(planned.asked)} cells are in {results.path}"
    return f"{stored}; the same command goes on from there"


def _opener(profile: ModelProfile, key: str | None) -> Open:
    def retrying(error: ModelError, seconds: float, attempt: int) -> None:
        remark(f"Asking again in {seconds:.0f} s: {error}")

    def opened(top: int) -> OpenModel:
        asked = (
            profile if top else replace(profile, temperature=1.0)
        )  # Samples of one answer would all be the same.
        return open_first_token(asked, key, top=top, clock=SystemClock(), on_retry=retrying)

    return opened


def _tell(made: Report, profile: ModelProfile, directory: Path, *, as_json: bool, quiet: bool) -> None:
    title = f"Does replayed completion prose make {profile.name} stop?"
    picture = directory / plot.FILE
    drawn = plot.draw(made, title, picture)
    if as_json:
        say_json(
            {
                "model": profile.name,
                "directory": str(directory),
                "plot": str(picture) if drawn else None,
                **in_json(made),
            }
        )
        return
    pollution_told.tell(made, title)
    if not quiet:
        say()
        say(f"Plot: {picture}" if drawn else plot.MISSING.capitalize())
