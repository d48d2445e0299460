"""`doctor` finds what is missing, and shows no key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from goalmode.cli import doctor
from goalmode.domain.finding import State

KEY = "canary-0123456789abcdef"


def findings(done: Any) -> dict[str, dict[str, str]]:
    return {finding["name"]: finding for finding in done.json}


def test_a_fresh_installation_is_sound(cli: Any) -> None:
    """Nothing is broken where nothing has been done yet."""
    done = cli("doctor", "--json")

    assert done.code == 0
    assert {"goalmode", "sqlite", "store", "config", "vocabulary", "sandbox"} <= set(findings(done))
    assert "without a sandbox" in findings(done)["sandbox"]["detail"]
    assert "goalmode.toml: not there" in findings(done)["config"]["detail"]
    assert not cli.store.exists()


def test_models_and_whether_their_keys_are_there(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each profile is listed with its host and its key's variable, never with the key."""
    monkeypatch.setenv("THERE", KEY)
    (tmp_path / "mine.toml").write_text(
        '[models.a]\nbase_url = "https://a.example/v1"\napi_key_env = "THERE"\n'
        '[models.b]\nbase_url = "https://b.example/v1"\napi_key_env = "GONE"\n'
        f'[models.c]\nbase_url = "https://u:{KEY}@c.example/v1"\n'
        "[prices.c]\ninput = 0.25\noutput = 2\n"
    )
    done = cli("doctor", "--json", "--config", "mine.toml")
    found = findings(done)

    assert done.code == 0
    assert (
        found["model a"]["detail"] == "a at a.example, its key is in $THERE, without a price: no cost limit"
    )
    assert (found["model b"]["state"], "GONE" in found["model b"]["detail"]) == ("warning", True)
    assert found["model c"]["state"] == "ok"
    assert found["model c"]["detail"].endswith("$0.25 in and $2.00 out for a million tokens")
    assert KEY not in done.out + cli("doctor", "--config", "mine.toml").out


@pytest.mark.sqlite
def test_what_is_broken_makes_it_fail(cli: Any, tmp_path: Path) -> None:
    """A broken configuration and a store that is none are named, and the exit code is 1."""
    (tmp_path / "mine.toml").write_text("models = 3")
    cli.store.parent.mkdir()
    cli.store.write_text("no store")
    done = cli("doctor", "--json", "--config", "mine.toml")

    assert done.code == 1
    assert {f["name"] for f in done.json if f["state"] == "broken"} == {"store", "config"}


@pytest.mark.sqlite
def test_a_store_that_others_may_open_is_told(cli: Any) -> None:
    """The file holds what was said to a model: others have no business there."""
    cli.new()
    cli.store.chmod(0o644)

    assert "chmod 600" in cli("doctor").out


@pytest.mark.parametrize(
    ("version", "state"),
    [((3, 6, 23), State.OK), ((3, 7, 0), State.WARNING), ((3, 51, 2), State.WARNING), ((3, 51, 3), State.OK)],
)
def test_sqlite_versions_with_the_bug_are_told(version: tuple[int, ...], state: State) -> None:
    """3.7.0 to 3.51.2 have the WAL-reset bug."""
    assert doctor.sqlite_finding(version).state is state
