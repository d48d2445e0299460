"""What is known to let somebody in, and what of the environment the processes of tools see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from goalmode.credentials import Credentials, credentials
from goalmode.domain.redact import MARK
from goalmode.settings import Settings, load_settings, resolve_profile

TOML = """
[models.one]
base_url = "https://one.example/v1?api_key=in-the-address"
name = "m"
api_key_env = "ONE"

[models.two]
base_url = "https://two.example/v1"
name = "m"
api_key_env = "TWO"

[redact]
patterns = ["EMP-[0-9]{6}"]

[mcp.git]
command = "git-server"
env = { GITHUB_TOKEN = "${GITHUB_TOKEN}", CACHE = "${HOME}/cache", LEVEL = "${LEVEL}" }

[mcp.far]
url = "https://far.example/mcp"
headers = { Authorization = "Bearer ${FAR}", Accept = "application/json" }
"""
SECRET = {"ONE": "key-one-1234", "TWO": "key-two-1234", "GITHUB_TOKEN": "ghp-12345678", "FAR": "far-12345678"}
PLAIN = {"HOME": "/srv/somebody", "PATH": "/opt/key-one-1234/bin", "LEVEL": "verbose", "LANG": "en_GB.UTF-8"}
ENVIRON = {**SECRET, **PLAIN, "GOALMODE_STORE": "x.sqlite"}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "goalmode.toml").write_text(TOML)
    return load_settings(tmp_path / "goalmode.toml", {})


def test_tools_see_no_credential_of_any_model_or_server(settings: Settings) -> None:
    """Whichever is in use: not by its name, and not by its value under another name."""
    known = credentials(settings, ENVIRON, resolve_profile(settings, "one"))

    assert known.environment({**ENVIRON, "MINE": "Bearer far-12345678", "COPY": "key-two-1234"}) == PLAIN


def test_all_of_it_is_struck_out_and_nothing_else(settings: Settings) -> None:
    """Keys, an address's query, servers' tokens, the user's patterns; not a home, a level, or a media type."""
    redact = credentials(settings, ENVIRON).redact
    ordinary = "/srv/somebody verbose application/json en_GB.UTF-8"

    assert redact(ordinary) == ordinary
    for text in (*SECRET.values(), "in-the-address", "EMP-123456"):
        assert redact(f"a {text} b") == "a [redacted] b"


def test_a_goals_own_model_is_known_beside_the_configured(settings: Settings) -> None:
    """Its variable is one that no configuration names."""
    own = resolve_profile(settings, "openai:m", "https://own.example/v1", "OWN")
    known = credentials(settings, {**ENVIRON, "OWN": "own-12345678"}, own)

    assert known.redact("own-12345678 key-two-1234") == "[redacted] [redacted]"
    assert "OWN" in known.names


def test_what_the_user_gives_to_commands_they_get(settings: Settings) -> None:
    """`[sandbox] env` names a server's variable: they have it, and it is struck out. A model's key they never have."""
    given = replace(settings, sandbox=replace(settings.sandbox, env=("GITHUB_TOKEN", "ONE")))
    known = credentials(given, ENVIRON)

    assert known.environment(ENVIRON) == {**PLAIN, "GITHUB_TOKEN": "ghp-12345678"}
    assert known.redact("ghp-12345678") == "[redacted]"


def test_together_they_know_what_each_knew() -> None:
    """Nothing is lost, whatever comes later; what is said twice is kept once."""
    first = Credentials(("secret-1",), frozenset({"A"}), ("secret-1",), ("X[0-9]+",))
    both = first | Credentials(("secret-2", "secret-1"), frozenset({"B"}), ("secret-2",)) | Credentials()

    assert both == Credentials(
        ("secret-1", "secret-2"), frozenset({"A", "B"}), ("secret-1", "secret-2"), ("X[0-9]+",)
    )


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("postgresql://goalmode@db/x?options=-csearch_path%3Dmine_alone", ""),
        ("postgresql://postgres:p%40ss-word@db/x", "p@ss-word"),
        ("/srv/goals.sqlite", ""),
    ],
)
def test_of_a_store_only_the_password_lets_somebody_in(url: str, secret: str) -> None:
    """Its user's name stands in many a path."""
    environ = {"GOALMODE_STORE": url, "P": "/srv/postgres/goalmode/lib", "D": f"x {secret or 'nothing'} y"}
    found = credentials(Settings(), environ)

    assert found.redact("goalmode of postgres in /srv/postgres") == "goalmode of postgres in /srv/postgres"
    assert found.environment(environ) == {n: environ[n] for n in (("P",) if secret else ("P", "D"))}
    if secret:
        assert found.redact(f"a {secret} b p%40ss-word") == f"a {MARK} b {MARK}"
