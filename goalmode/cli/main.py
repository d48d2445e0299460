"""The entry point: which command is meant, and one clear line for everything that goes wrong."""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from goalmode.cli import secrets
from goalmode.cli.lazy import LazyGroup, Place
from goalmode.cli.output import complain, remark, soften
from goalmode.domain.redact import Redactor
from goalmode.errors import GoalmodeError
from goalmode.platforms import refusal

DEBUG = "GOALMODE_DEBUG"

_SECRET_NAME = re.compile(r"(?i)(api_?key|_key|token|secret|passw(or)?d)$")

PLACES = {
    "new": Place("goalmode.cli.create:new", "Create a goal."),
    "run": Place("goalmode.cli.run:run", "Wake a goal until it is done, waiting, blocked or spent."),
    "wake": Place("goalmode.cli.run:wake", "Wake a goal exactly once, now."),
    "resume": Place("goalmode.cli.run:resume", "Let a stopped goal go on, with new limits or an answer."),
    "serve": Place("goalmode.cli.serve:serve", "Wake all goals as they become due."),
    "schedule": Place(
        "goalmode.cli.schedule:schedule", "Say what wakes a goal: a time, a file, another goal."
    ),
    "questions": Place("goalmode.cli.questions:questions", "List what goals ask."),
    "answer": Place("goalmode.cli.questions:answer", "Answer a goal's question."),
    "note": Place("goalmode.cli.questions:note", "Tell a goal something, whether it runs or not."),
    "check": Place("goalmode.cli.contract:check", "Run a goal's checks now, without a model."),
    "accept": Place("goalmode.cli.contract:accept_command", "Accept what only a person can."),
    "pause": Place("goalmode.cli.manage:pause", "Stop a goal until it is resumed."),
    "abort": Place("goalmode.cli.manage:abort", "Stop a goal for good."),
    "edit": Place("goalmode.cli.edit:edit", "Change what a goal asks for."),
    "delete": Place("goalmode.cli.manage:delete", "Remove a goal and all that is stored of it."),
    "list": Place("goalmode.cli.look:list_goals", "List the goals, newest first."),
    "show": Place("goalmode.cli.look:show", "Show a goal: contract, limits, state, wakeups."),
    "turns": Place("goalmode.cli.turns:turns", "Show a goal's model calls and tool calls."),
    "timeline": Place("goalmode.cli.timeline:timeline", "Show a goal over time, wakeup by wakeup."),
    "context": Place("goalmode.cli.contexts:context", "Print what the model saw at the start of a wakeup."),
    "why": Place("goalmode.cli.look:why", "Say why a goal is where it is, and how it goes on."),
    "report": Place("goalmode.cli.report:report", "Write one report of a goal, for people or for programs."),
    "export": Place("goalmode.cli.transfer:export", "Write a goal, whole, to one JSON file."),
    "import": Place("goalmode.cli.transfer:import_command", "Store a goal out of such a file, paused."),
    "web": Place("goalmode.cli.web:web", "Show the goals in a browser."),
    "memory": Place("goalmode.cli.memory:memory", "See and correct what goals have remembered."),
    "generic-agent": Place("goalmode.cli.generic_agent:generic_agent", "Goals that GenericAgent wakes."),
    "db": Place("goalmode.cli.db:db", "Check, copy and shrink the store itself."),
    "doctor": Place("goalmode.cli.doctor:doctor", "Check this installation, its store and its models."),
    "eval": Place("goalmode.cli.evals:evals", "Try on one model what is said of models in general."),
    "audit": Place("goalmode.cli.audit:audit", "Find code that guesses when an agent is done."),
    "demo": Place("goalmode.cli.demo:demo", "Compare replayed and rebuilt contexts, without a key."),
}


@click.group(
    cls=LazyGroup,
    places=PLACES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="goalmode", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Keep an agent's long goal alive over rebuilt contexts, and say why every wakeup ended.

    Set GOALMODE_STORE to keep the goals elsewhere, GOALMODE_DEBUG=1 to see tracebacks.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> NoReturn:
    """Run the command line, and end the process even if a tool's thread never returns."""
    if why := refusal():
        complain(why)
        sys.exit(1)
    _speak_utf8()
    code = call(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    stuck = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]
    if stuck:
        os._exit(code)
    sys.exit(code)


def call(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code."""
    secrets.forget()
    soften(sys.stdout, sys.stderr)
    try:
        result = cli.main(list(arguments), prog_name="goalmode", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.Abort:
        complain("stopped")
        return 130
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "goalmode"
        secrets.learn(_config_of(arguments))  # No command has come to do so.
        complain(f"{error.format_message().rstrip('.')}. See: {path} --help")
        return error.exit_code
    except click.ClickException as error:
        secrets.learn(_config_of(arguments))
        complain(error.format_message())
        return error.exit_code
    except SystemExit as error:  # click's own answer to a closed pipe
        return error.code if isinstance(error.code, int) else 1
    except GoalmodeError as error:
        _fail(str(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - whatever it is, a user gets one line
        if isinstance(error, OSError) and error.errno in FULL:
            _fail(f"{error.filename or 'output'}: cannot be written: {error.strerror}")
            return 1
        hint = "" if _debugs() else f"; {DEBUG}=1 shows where"
        _fail(f"goalmode itself failed: {type(error).__name__}: {error}{hint}")
        return 1


FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a system says where there is no room: no fault of ours."""


def _config_of(arguments: Sequence[str]) -> Path | None:
    """The configuration that a command line names, however wrong the rest of it is."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        name, _, value = argument.partition("=")
        if name == "--config":
            return Path(value or following)
    return None


def _fail(line: str) -> None:
    """Say what went wrong, without any secret of the environment; where, if that is wanted."""
    redact = Redactor(value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    if _debugs():
        remark(redact(traceback.format_exc()).rstrip())
    complain(redact(line))


def _debugs() -> bool:
    return os.environ.get(DEBUG, "") not in ("", "0")


def _speak_utf8() -> None:
    """Start again in Python's UTF-8 mode where the locale's encoding could not even name all files."""
    encoding = sys.getfilesystemencoding().lower().replace("-", "")
    if encoding != "utf8" and not sys.flags.utf8_mode and sys.orig_argv:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
