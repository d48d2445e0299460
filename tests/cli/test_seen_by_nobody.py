"""Every command there is, with secrets in every text and with texts that a terminal would obey: neither gets out."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from goalmode.cli.main import PLACES, call
from goalmode.state import bodies
from goalmode.state import tables as t
from goalmode.state.store import Store
from goalmode.testing import Stub
from goalmode.testing.steps import tool

Serve = Callable[..., Stub]

KEY = "canary-K3y/with+odd=chars-0123456789"
PASSWORD = "canary-passw0rd"
TOKEN = "canary.tok3n.abcdef"
NUMBER = "EMP-471147"
SECRETS = (
    KEY,
    PASSWORD,
    TOKEN,
    NUMBER,
    quote(KEY, safe=""),
    base64.b64encode(KEY.encode()).decode().rstrip("="),
)
SAID = (
    f"key {KEY} {quote(KEY, safe='')} Authorization: Bearer {TOKEN} at https://user:{PASSWORD}@host/v1?api_key={TOKEN}"
    f" of {NUMBER}"
)
HOSTILE = "a\x1b[31mred\x1b]0;title\x07 \x9b2J \r\b \u202eevil\u2066 \u200f\u2028 \x7f \ufeff"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")

CONFIG = f"""
[models.gateway]
base_url = "http://HOST/v1?token={TOKEN}"
name = "stub"
api_key_env = "MY_KEY"

[models.other]
base_url = "http://user:{PASSWORD}@127.0.0.1:9/v1"

[redact]
patterns = ["EMP-[0-9]{{6}}"]
"""


def walk(said: str, tmp_path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Command lines for every command; ID is the goal's. Those that need more than a store have none here."""
    out = str(tmp_path / "out")
    return {
        "new": [("new", said, "--workspace", "WS", "--model", "gateway", "--require", said), ("new", said)],
        "wake": [("wake", "ID", "--log-level", "debug"), ("wake", said)],
        "run": [("run", "ID", "--max-wait", "0s", "--log-json", "--log-level", "debug"), ("run", "ID", said)],
        "serve": [("serve", "--once", "--label", said, "--log-level", "debug"), ("serve", "--poll", said)],
        "schedule": [("schedule", "ID", "--at", said), ("schedule", "ID")],
        "questions": [("questions",), ("questions", "ID"), ("questions", said)],
        "note": [("note", "ID", said), ("note", "ID"), ("note", said, said)],
        "answer": [("answer", "ID", said), ("answer", "ID", "Q1", said)],
        "check": [("check", "ID"), ("check", said)],
        "accept": [("accept", "ID", said)],
        "pause": [("pause", "ID"), ("pause", said)],
        "resume": [("resume", "ID", "--no-run"), ("resume", "ID", "--turn-budget", said),
                   ("resume", "ID", "--model", said)],
        "edit": [("edit", "ID", "--require", said), ("edit", "ID", "--objective", said)],
        "list": [("list",), ("list", "--limit", said)],
        "show": [("show", "ID"), ("show", said)],
        "turns": [("turns", "ID", "--full"), ("turns", "ID", "--wakeup", said), ("turns", "ID", "--last", "3")],
        "timeline": [("timeline", "ID"), ("timeline", said)],
        "context": [("context", "ID"), ("context", "ID", "--sections"), ("context", "ID", "--next"),
                    ("context", "ID", "--wakeup", "2", "--diff", "1")],
        "why": [("why", "ID"), ("why", "ID", "--wakeup", "1"), ("why", said)],
        "report": [("report", "ID"), ("report", "ID", "--html"), ("report", "ID", "--html", "--output", f"{out}.html"),
                   ("report", "ID", "--output", str(tmp_path / "no" / said))],
        "export": [("export", "ID"), ("export", "ID", "--output", f"{out}.json"), ("export", said)],
        "import": [("import", f"{out}.json", "--new-id"), ("import", said)],
        "memory": [("memory", "list"), ("memory", "search", said), ("memory", "show", said)],
        "generic-agent": [("generic-agent", "list"), ("generic-agent", said)],
        "doctor": [("doctor",)],
        "delete": [("delete", said, "--yes")],
        "abort": [("abort", said), ("abort", "ID")],
        "eval": [("eval", said)],
        "audit": [("audit", str(tmp_path)), ("audit", str(tmp_path), "--tier", said), ("audit", said)],
        "demo": [],  # Its goal is its own.
        "web": [],  # Its pages: tests/web.
        "db": [("db", said)],
    }  # fmt: skip


@pytest.fixture
def goal(cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], str]:
    """Makes a goal whose every text is the one given; its provider says the same."""

    def make(said: str) -> str:
        saved = {
            "key_info": said,
            "summary": said,
            "done": [said],
            "pending": [f"see {said}"],
            "next_steps": [said],
        }
        asks = {"status": "needs_user_input", "summary": said, "missing_info": said, "why_no_default": said}
        printed = said.replace("\x00", "")
        steps = [
            tool("shell", {"command": f"printf '%s' '{printed}'"}, text=said),
            tool("update_working_checkpoint", saved),
            tool("start_long_term_update", {}),
            tool("complete", asks),
            *[tool("complete", asks)] * 6,
        ]
        stub = serve(steps, key=KEY)
        monkeypatch.setenv("MY_KEY", KEY)
        config = tmp_path / "goalmode.toml"
        host = stub.base_url.removeprefix("http://").removesuffix("/v1")
        config.write_text(CONFIG.replace("HOST", host))
        monkeypatch.setenv("GOALMODE_CONFIG", str(config))
        made = cli(
            "new",
            said,
            "--workspace",
            str(cli.workspace),
            "--model",
            "gateway",
            "--check",
            "echo no; exit 1",
            "-q",
        )
        assert made.code == 0, made.err
        uid = made.out.strip()
        assert cli("wake", uid).code == 30
        assert cli("answer", uid, said).code == 0
        assert cli("wake", uid).code == 30
        return str(uid)

    return make


Printed = Callable[..., tuple[int, str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Printed:
    """Runs one command line: its exit code, and all that it wrote, a traceback of its own included."""

    def run(*line: str) -> tuple[int, str]:
        capsys.readouterr()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b""), encoding="utf-8"))
        code = call(line)
        said = capsys.readouterr()
        assert "itself failed" not in said.err, (line, said.err)
        return code, said.out + said.err

    return run


def run_all(cli: Any, printed: Printed, uid: str, said: str, tmp_path: Path) -> list[tuple[str, str]]:
    """What each command line prints, as text and as JSON; also what they say of their own failures."""
    known = walk(said, tmp_path)
    assert set(PLACES) - set(known) == set(), "a new command needs its lines here"
    written = []
    for name, lines in known.items():
        for line in lines if name in PLACES else ():
            whole = [{"ID": uid, "WS": str(cli.workspace)}.get(part, part) for part in line]
            for options in ((), ("--json",)) if "--output" not in line else ((),):
                code, text = printed(*whole, *options)
                assert code in (0, 1, 2, 10, 11, 20, 30, 130), (line, text)
                written.append((" ".join((name, *line[2:], *options)), text))
    return written


def everything_stored(cli: Any) -> str:
    """Every value of every row, bodies unpacked."""
    with Store(cli.url, readonly=True) as store, store.reading() as connection:
        tables = t.SQLModel.metadata.tables.values()
        rows = [repr(tuple(row)) for table in tables for row in connection.execute(table.select())]
        ids = connection.execute(t.bodies.select().with_only_columns(t.bodies.c.id)).scalars()
        return "\n".join([*rows, *bodies.get(connection, list(ids)).values()])


def spilled(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize("debug", ["", "1"], ids=["plain", "tracebacks"])
def test_no_secret_gets_out(
    cli: Any,
    goal: Callable[[str], str],
    printed: Printed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    debug: str,
) -> None:
    """B115, B117: keys, authorisation headers, passwords in URLs and configured patterns are in no output, no row, no
    file, no log and no traceback.
    """
    monkeypatch.setenv("GOALMODE_DEBUG", debug)
    uid = goal(SAID)

    assert [line for line, text in run_all(cli, printed, uid, SAID, tmp_path) if spilled(text)] == []
    assert spilled(everything_stored(cli)) == []
    for file in (tmp_path / "out.html", tmp_path / "out.json", *cli.store.parent.rglob("*")):
        if file.is_file():
            assert spilled(file.read_bytes().decode("latin-1")) == [], file


def test_what_was_stored_before_a_pattern_was_known_is_not_shown(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern that is configured later strikes out what is there already, before it is cut to fit a line."""
    uid = cli.new("--require", f"{'x' * 75} {NUMBER}", objective=f"Ask {NUMBER}.")
    config = tmp_path / "goalmode.toml"
    config.write_text('[redact]\npatterns = ["EMP-[0-9]{6}"]\n')
    assert NUMBER in cli("show", uid).out
    monkeypatch.setenv("GOALMODE_CONFIG", str(config))

    for command in ("show", "why", "timeline", "report", "export"):
        for options in ((), ("--json",)):
            assert "EMP-" not in cli(command, uid, *options).out, command
    assert "4 texts held a secret" in cli("export", uid).err
    assert "EMP-" not in cli("list").out


@pytest.mark.long
@pytest.mark.once
def test_nothing_that_a_terminal_obeys_gets_out(
    cli: Any, goal: Callable[[str], str], printed: Printed, tmp_path: Path
) -> None:
    """Escapes, C1 controls, carriage returns, bidirectional marks: all are shown as escapes, on standard error too."""
    uid = goal(HOSTILE)
    written = run_all(cli, printed, uid, HOSTILE, tmp_path)

    assert [line for line, text in written if OBEYED.search(text)] == []
    told = "\n".join(text for _, text in written)
    assert "\\x1b[31mred" in told
    assert "\\u202eevil" in told
    for file in ("out.html", "out.json"):
        assert OBEYED.findall((tmp_path / file).read_text("utf-8")) == []
