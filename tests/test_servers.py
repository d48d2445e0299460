"""`[mcp.NAME]` of the user's configuration, and what it comes to for a goal."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode.credentials import credentials
from goalmode.domain.outside import Server, ServerChoice, may_use
from goalmode.errors import ConfigError
from goalmode.servers import resolve, secrets_of, variables_of
from goalmode.settings import Settings, load_settings


def load(tmp_path: Path, text: str) -> Settings:
    file = tmp_path / "goalmode.toml"
    file.write_text(text)
    return load_settings(file, {})


FULL = """
[mcp.git]
command = "mcp-server-git --repository '.' "
env = { TOKEN = "${GIT_TOKEN}", MODE = "fast-and-plain" }
start_seconds = 5
call_seconds = 0.5
tools = ["git_status"]
hints = false

[mcp.far]
url = "https://far.example/mcp"
headers = { Authorization = "Bearer ${FAR_TOKEN}" }

[mcp.list]
command = ["program", "with space"]
"""
ENVIRON = {"GIT_TOKEN": "git-token-1", "FAR_TOKEN": "far-token-1"}


def test_a_server_is_what_its_table_says(tmp_path: Path) -> None:
    """Variables are filled in when a goal is woken; a command is split as a shell would."""
    git, far, listed = resolve(None, load(tmp_path, FULL).mcp, ENVIRON)

    assert git == Server(
        "git",
        ("mcp-server-git", "--repository", "."),
        env={"TOKEN": "git-token-1", "MODE": "fast-and-plain"},
        start_seconds=5,
        call_seconds=0.5,
        tools=("git_status",),
        hints=False,
    )
    assert (far.url, far.headers) == ("https://far.example/mcp", {"Authorization": "Bearer far-token-1"})
    assert listed == Server("list", ("program", "with space"))


def test_a_goal_names_its_own(tmp_path: Path) -> None:
    """Of the configuration by name, or with an address; one that is not configured here has a problem."""
    known = load(tmp_path, FULL).mcp
    choices = (
        ServerChoice("list"),
        ServerChoice("own", "cat -u"),
        ServerChoice("web", "http://x/y"),
        ServerChoice("z"),
    )
    listed, own, web, gone = resolve(choices, known, ENVIRON)

    assert (listed.command, own.command, web.url) == (("program", "with space"), ("cat", "-u"), "http://x/y")
    assert gone.problem == "goalmode.toml has no such server on this machine"
    assert resolve((), known, ENVIRON) == ()


def test_a_variable_that_is_not_set_is_a_problem_of_its_server_alone(tmp_path: Path) -> None:
    """The others are there."""
    git, far, listed = resolve(None, load(tmp_path, FULL).mcp, {"GIT_TOKEN": "x"})

    assert (git.problem, listed.problem) == ("", "")
    assert far.problem == "$FAR_TOKEN is not set; its configuration needs it"


def test_what_lets_somebody_in_is_a_secret(tmp_path: Path) -> None:
    """Headers, variables, and texts under names such as TOKEN; not every word."""
    settings = load(tmp_path, FULL)

    assert set(secrets_of(settings.mcp, ENVIRON)) == {"git-token-1", "far-token-1", "Bearer far-token-1"}
    redact = credentials(settings, ENVIRON).redact
    assert redact("a git-token-1 b far-token-1 fast-and-plain") == (
        "a [redacted] b [redacted] fast-and-plain"
    )


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('command="a"\nenv={ CACHE = "${HOME}/cache", LANG = "${LANG}" }', set()),
        ('command="a"\nenv={ TOKEN_FILE = "${HOME}/tok" }', {"/srv/me/tok"}),
        (
            'command="a"\nenv={ LEVEL = "${LEVEL}", MAX_TOKENS = "100000", GIT_AUTHOR_NAME = "Jane Doe" }',
            set(),
        ),
        ('command="a"\nenv={ KEYBOARD = "german", TOKENIZERS_PARALLELISM = "disabled" }', set()),
        ('command="a"\nenv={ X = "${MY_API_KEY}" }', {"key-123"}),
        ('command="a"\nenv={ API_KEY = "${LEVEL}" }', {"verbose"}),
        ('command="a"\nenv={ PGPASSWORD = "as it is", GITHUB_PAT = "pat-123" }', {"as it is", "pat-123"}),
        ('command="a"\nenv={ DATABASE_URL = "postgres://me:pw-123@h/d" }', {"pw-123"}),
        ('command="a"\nenv={ ODD = "http://[" }', set()),
        ('url="http://h"\nheaders={ Accept = "application/json", X-Client = "goalmode" }', set()),
        ('url="http://h"\nheaders={ X-Place = "${HOME}" }', set()),
        ('url="http://h"\nheaders={ X-Tenant = "t-${LEVEL}" }', {"verbose", "t-verbose"}),
        ('url="http://h"\nheaders={ Authorization = "Bearer abc-123" }', {"Bearer abc-123", "abc-123"}),
        ('url="http://h"\nheaders={ Cookie = "sid=abc-123" }', {"sid=abc-123"}),
        (
            'url="http://h"\nheaders={ X-Api-Key = "abc-123", X-Auth-Token = "def-456" }',
            {"abc-123", "def-456"},
        ),
        ('url="http://me:pw-123@h/p?mode=plain"', {"pw-123"}),
    ],
)
def test_ordinary_words_of_a_configuration_are_no_secrets(
    tmp_path: Path, text: str, secret: set[str]
) -> None:
    """They would be struck out of everything: what counts is a name that lets somebody in, or a header's variable."""
    known = load(tmp_path, f"[mcp.a]\n{text}\n").mcp
    environ = {"HOME": "/srv/me", "LANG": "en_GB.UTF-8", "LEVEL": "verbose", "MY_API_KEY": "key-123"}

    assert set(secrets_of(known, environ)) == secret
    assert "HOME" not in variables_of(known)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[mcp]\ngit = 1", "mcp.git: '1' is not valid: a table, [mcp.git]"),
        ("[mcp.git]", "mcp.git: '' is not valid: a command or a url, one of them"),
        ("[mcp.git]\ncommand='a'\nurl='http://x'", "a command or a url, one of them"),
        ("[mcp.git]\ncommand=''", "mcp.git.command: '' is not valid: a command line"),
        ('[mcp.git]\ncommand="\'open"', "a command line"),
        ("[mcp.git]\ncommand=[]", "a command line"),
        ("[mcp.git]\ncommand=['a', 1]", "a command line"),
        ("[mcp.git]\nurl='far.example'", "an http or https address"),
        ("[mcp.git]\ncommand='a'\nenv={'A B'='x'}", "a table of environment variables"),
        ("[mcp.git]\ncommand='a'\nenv={A=1}", "a table of environment variables"),
        (
            "[mcp.git]\ncommand='a'\nheaders={A='x'}",
            "mcp.git.headers: '(not shown)' is not valid: a url beside it",
        ),
        ("[mcp.git]\nurl='http://x'\nenv={A='x'}", "a command beside it"),
        ("[mcp.git]\nurl='http://x'\nheaders={'A:'='x'}", "a table of HTTP headers"),
        ("[mcp.git]\ncommand='a'\nstart_seconds=0", "a number of seconds above 0"),
        ("[mcp.git]\ncommand='a'\ncall_seconds=true", "a number of seconds above 0"),
        ("[mcp.git]\ncommand='a'\ntools=[]", "a list of tools"),
        ("[mcp.git]\ncommand='a'\nhints='no'", "true or false"),
        ("[mcp.git]\ncommand='a'\nargs=['b']", "mcp.git.args: unknown key; known are command, url"),
        ("[mcp.a__b]\ncommand='a'", "mcp: 'a__b' is not valid: a name of letters"),
        ("[mcp.'a b']\ncommand='a'", "a name of letters"),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path: Path, text: str, line: str) -> None:
    """With the file, the key and what would be right."""
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)

    assert line in str(raised.value)
    assert str(raised.value).startswith(f"{tmp_path / 'goalmode.toml'}: ")


@pytest.mark.parametrize(
    ("allowed", "used"),
    [
        (None, True),
        ((), False),
        (("shell",), False),
        (("mcp__git__status",), True),
        (("mcp__git__*",), True),
        (("mcp__*",), True),
        (("mcp__g*",), True),
        (("mcp__github__x",), False),
        (("mcp__gi__*",), False),
    ],
)
def test_a_server_none_of_whose_tools_is_allowed_is_not_used(
    allowed: tuple[str, ...] | None, used: bool
) -> None:
    """So none is started for nothing."""
    assert may_use(allowed, Server("git")) is used
