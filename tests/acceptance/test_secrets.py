"""Rows B115 and B117: a key is where the user put it and in the request's header, and nowhere else."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from goalmode.testing import Stub, steps
from tests import stores
from tests.acceptance.cli import Command, Done
from tests.acceptance.world import complete, mark

CANARY = "canary-K3y/with+odd=chars-0123456789"
FORMS = [CANARY, base64.b64encode(CANARY.encode()).decode().rstrip("="), CANARY.replace("/", "%2F")]


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The most verbose logging there is; what it said is searched too."""
    with caplog.at_level(logging.DEBUG):
        yield
    assert not spilled(caplog.text)


def spilled(text: str) -> list[str]:
    return [form for form in FORMS if form in text]


def clean(goalmode: Command, *done: Done) -> None:
    """No output and no file beside the store holds the canary in any form."""
    for one in done:
        assert not spilled(one.out + one.err)
    assert not spilled("".join(stores.dump(goalmode.url)))
    for file in goalmode.store.parent.rglob("*"):
        if file.is_file():
            assert not spilled(file.read_bytes().decode("latin-1")), file


def all_of(goalmode: Command, goal: str) -> list[Done]:
    """Everything that can be read of a goal."""
    return [
        goalmode("turns", goal, "--full"),
        *(goalmode(c, goal, "--json") for c in ("show", "turns", "why", "context")),
    ]


@pytest.mark.parametrize("case", ["works", "401", "crash", pytest.param("killed", marks=pytest.mark.slow)])
def test_the_key_is_nowhere(
    goalmode: Command, workspace: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """B115: a run whose tools look for it, one refused, one crash with a traceback, one kill: no file, no output."""
    environment = {"MY_KEY": CANARY, "GOALMODE_DEBUG": "1"}
    look = steps.tool(
        "shell", {"command": f"env; echo x >> marks; echo {CANARY} | base64; echo key is {CANARY}"}
    )
    note = steps.tool("update_working_checkpoint", {"key_info": f"the key is {CANARY}", "done": [CANARY]})
    script = {
        "works": [look, note, complete(f"It is {CANARY}.")],
        "401": [mark(), steps.echo(401)],
        "crash": [look],
        "killed": [look, steps.stall(steps.text("late"), until=threading.Event())],
    }[case]
    if case == "crash":

        def fails(*arguments: object, **named: object) -> None:
            raise RuntimeError(f"a fault that knows {CANARY}")

        monkeypatch.setattr("goalmode.orchestrator.wake.Wake.outcome", fails)
    with Stub(script, key=CANARY) as stub:
        goal = goalmode.new(
            "x",
            workspace,
            stub.base_url,
            "--deliverable",
            "marks",
            "--api-key-env",
            "MY_KEY",
            "--max-turns",
            "5",
        )
        if case == "killed":
            child = goalmode.start("run", goal, "--json", **environment)
            child.until(lambda: len(stub.requests) >= 2, "the second request")
            child.kill()
            done = Done(-9, child.out, child.err)
        else:
            done = goalmode("wake", goal, "--json", env=environment)
        assert all(seen.headers["authorization"] == f"Bearer {CANARY}" for seen in stub.requests)
        assert len(stub.requests) == {"works": 3, "401": 2, "crash": 1, "killed": 2}[case]

    assert done.code == {"works": 0, "401": 20, "crash": 21, "killed": -9}[case]
    clean(goalmode, done, *all_of(goalmode, goal))


def test_an_address_with_credentials(goalmode: Command, workspace: Path, tmp_path: Path) -> None:
    """B117: 422 echoes all, for a base URL with a password and a key: only host and status are to be seen."""
    password = "canary-passw0rd"
    with Stub([steps.echo(422)]) as stub:
        host = stub.base_url.removeprefix("http://").removesuffix("/v1")
        config = tmp_path / "goalmode.toml"
        quoted = FORMS[2].replace("+", "%2B").replace("=", "%3D")
        url = f"http://user:{password}@{host}/v1?api_key={quoted}"
        config.write_text(f'[models.gateway]\nbase_url = "{url}"\nname = "stub"\n')
        made = goalmode(
            "new", "x", "--workspace", str(workspace), "--model", "gateway", "--config", str(config), "--json"
        )
        goal = made.json["id"]
        done = goalmode("wake", goal, "--config", str(config), env={"GOALMODE_DEBUG": "1"})
        assert len(stub.requests) == 1
        assert f"api_key={quoted}" in stub.requests[0].path

    everything = [made, done, *all_of(goalmode, goal), goalmode("doctor", "--config", str(config))]
    clean(goalmode, *everything)
    assert not any(password in one.out + one.err for one in everything)
    assert password not in "".join(stores.dump(goalmode.url))
    assert host in done.line
    assert "422" in done.line
    refused = goalmode("new", "x", "--workspace", str(workspace), "--model", "openai:m", "--base-url", url)
    assert refused.code == 2
    assert password not in refused.line
