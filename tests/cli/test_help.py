"""Help: there is some for every command, and asking for it costs next to nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import click
import pytest

from goalmode.cli import main
from goalmode.cli.main import PLACES

HEAVY = {
    "aiohttp",
    "alembic",
    "anyio",
    "dbos",
    "httpx",
    "jinja2",
    "mcp",
    "opentelemetry",
    "psycopg",
    "pydantic",
    "rich",
    "sqlalchemy",
    "sqlite3",
    "sqlmodel",
    "starlette",
    "tiktoken",
    "uvicorn",
}


@pytest.mark.parametrize("name", PLACES)
def test_every_command_has_help(cli, name: str) -> None:
    """`goalmode COMMAND --help` says how it is used, in ASCII, and exits 0."""
    done = cli(name, "--help")

    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: goalmode {name} ")
    assert done.out.isascii()


@pytest.mark.parametrize("name", PLACES)
def test_every_option_says_what_it_is_for(name: str) -> None:
    """No option is left without a word about it."""
    command = main.cli.get_command(click.Context(main.cli), name)
    assert command is not None
    silent = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]

    assert command.help
    assert [option for option in silent if option not in ("limit", "offset")] == []


def test_help_and_version_load_nothing_heavy() -> None:
    """`--help` and `--version` answer before any library of the engine is loaded."""
    script = (
        "import sys, json\n"
        "from goalmode.cli.main import call\n"
        "codes = [call(['--help']), call(['--version'])]\n"
        "sys.stderr.write(json.dumps([codes, sorted(sys.modules)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    codes, modules = json.loads(done.stderr)

    assert codes == [0, 0]
    assert HEAVY & set(modules) == set()


def test_no_command_at_all_is_answered_with_help(cli) -> None:
    """`goalmode` alone lists what it can do."""
    done = cli()

    assert done.code == 0
    assert all(name in done.out for name in PLACES)


@pytest.mark.parametrize("arguments", [["frob"], ["--frob"], ["run"], ["list", "--limit", "-1"]], ids=str)
def test_wrong_usage_is_one_line_and_2(cli, arguments: list[str]) -> None:
    """What cannot be parsed is said in one line that names the help."""
    done = cli(*arguments)

    assert (done.code, done.out) == (2, "")
    assert "--help" in done.line()
