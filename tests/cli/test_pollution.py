"""`goalmode eval pollution` as a user meets it: what it says before, what it asks, how it goes on, what it tells."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli import pollution as command
from goalmode.cli import pollution_told
from goalmode.evals import plot
from goalmode.evals.results import FILE
from goalmode.testing import Stub, steps
from goalmode.testing.steps import Step
from tests.evals.builders import inclined

CELLS = 2 * 1 * 2 * 4
"""Languages, goals, orders; N, B5, A5 and C5."""

PROFILE = """
[models.m]
base_url = "{url}"
window = 16000
max_output = 64
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quicker `--quick`, and no library for plots, which takes longer to load than all else."""
    monkeypatch.setattr(command, "QUICK_TURNS", (5,))
    monkeypatch.setattr(command, "QUICK_GOALS", 1)
    monkeypatch.setattr(plot, "draw", lambda *_: False)


@pytest.fixture
def three_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as an interval needs."""
    monkeypatch.setattr(command, "QUICK_GOALS", 3)


@pytest.fixture
def run(cli: Any, tmp_path: Path, no_retries: None) -> Callable[..., Any]:
    """The command, for a model at the stub's address."""

    def run(stub: Stub | str, *options: str, yes: bool = True, profile: str = PROFILE, **given: Any) -> Any:
        url = stub if isinstance(stub, str) else stub.base_url
        (tmp_path / "mine.toml").write_text(profile.replace("{url}", url))
        asked = ["--model", "m", "--config", "mine.toml", "--out", "out", "--quick", *options]
        return cli("eval", "pollution", *asked, *(["--yes"] if yes else []), **given)

    return run


def _lines(tmp_path: Path) -> list[Any]:
    return [json.loads(line) for line in (tmp_path / "out" / FILE).read_text("utf-8").splitlines()]


def test_a_model_that_claims_talk_into_stopping_is_shown_to_be_one(
    run: Any, serve: Any, tmp_path: Path, three_goals: None
) -> None:
    """Every cell once, the cost before, the table and the sentence after; 5 turns flip every pair."""
    stub = serve(inclined)
    done = run(stub)

    assert done.code == 0
    assert f"{3 * CELLS} requests, about " in done.err
    assert "If the server tells no log-probabilities: 480 requests" in done.err
    assert "m has no price in goalmode.toml" in done.err
    assert "replayed claims of completion, A5 - C5: less inclined to go on, by 1." in done.out
    [row] = [line.split() for line in done.out.splitlines() if line.startswith("A5 - C5 ")]
    assert row[-6:] == ["12", "3", "12", "0", "less", "tool"]
    assert "needs matplotlib" in done.out
    assert stub.rejected == []
    assert (
        len(stub.requests) == 3 * CELLS + 2
    )  # The list of 500 is refused, that of 20 tried and then asked for.
    assert len(_lines(tmp_path)) == 3 * CELLS + 1


def test_a_program_gets_json_alone(run: Any, serve: Any) -> None:
    """With `--quiet` nothing stands beside it."""
    done = run(serve(inclined), "--json", "--quiet")

    assert (done.code, done.err) == (0, "")
    assert (done.json["method"], done.json["top"], done.json["known"]) == ("logprobs", 20, CELLS)
    assert done.json["plot"] is None
    assert any("A5 - C5: only 1 goal(s), too few" in said for said in done.json["says"])


def test_a_finished_evaluation_asks_nothing_again(run: Any, serve: Any) -> None:
    """Nor does it ask whether to start: the table is there at once."""
    stub = serve(inclined)
    first = run(stub)
    asked = len(stub.requests)
    second = run(stub, yes=False)

    assert (second.code, second.err, len(stub.requests)) == (0, "", asked)
    assert first.out == second.out


def test_ctrl_c_keeps_what_is_known_and_says_how_to_go_on(
    run: Any, serve: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 130; the same command asks only the rest, and comes to the same figures."""
    stub = serve(inclined)
    whole = run(stub, "--json").json
    (tmp_path / "out" / FILE).unlink()

    def stopping(**_: Any) -> Any:
        def told(cell: Any, known: int, total: int) -> None:
            if known == 7:
                raise KeyboardInterrupt

        return told

    with monkeypatch.context() as patch:
        patch.setattr(pollution_told, "progress", stopping)
        stopped = run(stub, "--quiet")
    asked = len(stub.requests)
    rest = run(stub, "--json")

    assert (stopped.code, stopped.out) == (130, "")
    assert f"stopped. 7 of {CELLS} cells are in out/{FILE}; the same command goes on" in stopped.line()
    assert f"7 of {CELLS} cells are known" in rest.err
    assert len(stub.requests) - asked == CELLS - 7
    assert rest.json == whole


def test_a_server_that_fails_in_the_middle_is_told_with_what_is_kept(run: Any, serve: Any) -> None:
    """The provider's exit code; afterwards it goes on."""

    def failing(request: Mapping[str, Any], number: int) -> Step:
        return (
            inclined(request, number) if number < 6 else steps.status(500, {"error": {"message": "broken"}})
        )

    done = run(serve(failing), "--quiet")

    assert done.code == 20
    assert f"broken. 4 of {CELLS} cells are in out/{FILE}" in done.line()


def test_a_server_that_is_not_there_is_one_line_and_leaves_nothing(run: Any, tmp_path: Path) -> None:
    """No file, no directory."""
    done = run("http://127.0.0.1:9/v1", "--quiet")

    assert done.code == 20
    assert "connection" in done.line().lower()
    assert not (tmp_path / "out").exists()


def test_a_server_without_log_probabilities_is_sampled_and_that_is_said(run: Any, serve: Any) -> None:
    """Ten answers to each question at temperature 1; the figures are shares."""

    def silent(request: Mapping[str, Any], number: int) -> Step:
        plain = {name: value for name, value in request.items() if not name.endswith("logprobs")}
        assert "logprobs" in request or request["temperature"] == 1.0
        return inclined(plain, number)

    done = run(serve(silent), "--samples", "2")

    assert done.code == 0
    assert "A5 - C5 -2.000 - 4 1 4 0 not shown" in " ".join(done.out.split())
    assert "the share of tool less the share of final, sampled" in done.out


def test_log_probabilities_that_are_wanted_and_not_there_are_refused(
    run: Any, serve: Any, tmp_path: Path
) -> None:
    """In one line, with what may be given instead; nothing is left behind."""
    done = run(serve([steps.text("tool")], forever=True), "--method", "logprobs", "--quiet")

    assert done.code == 2
    assert "method: 'logprobs' is not valid: samples: this server tells no log-probabilities" in done.line()
    assert not (tmp_path / "out").exists()


def test_without_a_terminal_and_without_yes_nothing_is_asked(run: Any, serve: Any, tmp_path: Path) -> None:
    """Nobody is there to agree to the cost."""
    stub = serve(inclined)
    done = run(stub, "--quiet", yes=False)

    assert done.code == 2
    assert "give --yes" in done.line()
    assert (stub.requests, (tmp_path / "out").exists()) == ([], False)


def test_turns_beyond_the_window_are_left_out_and_said(run: Any, serve: Any, tmp_path: Path) -> None:
    """The server finds them too long: the rest is asked, and they are not tried again."""

    def small(request: Mapping[str, Any], number: int) -> Step:
        if len(request["messages"]) < 5:
            return inclined(request, number)
        error = {
            "message": "This model's maximum context length is 100 tokens",
            "code": "context_length_exceeded",
        }
        return steps.status(400, {"error": error})

    stub = serve(small)
    done = run(stub)
    asked = len(stub.requests)

    assert done.code == 0
    assert "A5 en: 2 cells left out: " in done.out
    assert "there is no pair of replay and control: nothing is shown" in done.out
    assert run(stub, "--quiet").code == 0
    assert len(stub.requests) == asked


def test_a_window_that_holds_no_question_is_refused(run: Any) -> None:
    """The line names the window."""
    profile = PROFILE.replace("16000", "1200").replace("64", "64\ncontext_tokens = 100")
    done = run("http://127.0.0.1:9/v1", profile=profile)

    assert done.code == 2
    assert "window: '1200' is not valid" in done.line()


def test_results_of_another_configuration_are_refused(run: Any, serve: Any, tmp_path: Path) -> None:
    """What differs is named; nothing is asked."""
    run(serve(inclined), "--quiet")
    other = serve(inclined)
    done = run(other, "--quiet")

    assert done.code == 2
    assert "this one is of another evaluation, with base_url" in done.line()
    assert other.requests == []


def test_templates_that_changed_are_noticed(run: Any, serve: Any, tmp_path: Path) -> None:
    """Answers to other words are no answers to these."""
    stub = serve(inclined)
    run(stub, "--quiet")
    (tmp_path / "templates" / "en").mkdir(parents=True)
    (tmp_path / "templates" / "en" / "system.j2").write_text("You work.")
    done = run(stub, "--quiet")

    assert done.code == 2
    assert "was asked there in other words" in done.line()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--samples", "0"), "--samples"),
        (("--answer-tokens", "0"), "--answer-tokens"),
        (("--method", "guess"), "--method"),
        (("--model", "n"), "model: 'n' is not valid"),
        (("--base-url", "http://u:p@127.0.0.1/v1"), "base-url"),
        (("--out", "mine.toml"), "mine.toml is none"),
    ],
)
def test_wrong_options_are_one_line(run: Any, options: tuple[str, ...], said: str) -> None:
    """Each names what is wrong."""
    done = run("http://127.0.0.1:9/v1", "--quiet", *options)

    assert (done.code, done.out) == (2, "")
    assert said in done.line()


def test_the_price_is_told_before(run: Any, serve: Any) -> None:
    """Of the requests at most, caches left out."""
    done = run(serve(inclined), profile=PROFILE + "[prices.m]\ninput = 1\noutput = 2\n")

    assert "at most $0." in done.err
    assert "no price" not in done.err
