"""The user's configuration: what it says, and how it is told what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goalmode.domain.cost import Price
from goalmode.domain.profile import CallIds, ModelProfile, Protocol
from goalmode.domain.sandbox import SandboxSettings
from goalmode.errors import BadInput, ConfigError
from goalmode.settings import Settings, api_key, load_settings, resolve_profile

Write = Callable[[str], Path]

WHOLE = """
[defaults]
model = "local"

[models.local]
wire = "openai"
name = "qwen3-8b"
base_url = "http://127.0.0.1:8080/v1/"
api_key_env = "LOCAL_KEY"
window = 32768
max_output = 2048
context_tokens = 12000
protocol = "json"
encoding = ""
token_factor = 1.3
timeout_seconds = 60
temperature = 0

[models.big]
name = "gpt-5-mini"

[redact]
patterns = ["ghp_[A-Za-z0-9]{36}"]
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(content: str) -> Path:
        path = tmp_path / "goalmode.toml"
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_a_whole_file_is_read(write: Write) -> None:
    """Every key of the file arrives in the settings."""
    path = write(WHOLE)
    settings = load_settings(path, {})

    local = ModelProfile(
        spec="local",
        wire="openai",
        name="qwen3-8b",
        base_url="http://127.0.0.1:8080/v1",
        api_key_env="LOCAL_KEY",
        window=32768,
        max_output=2048,
        context_tokens=12000,
        protocol=Protocol.JSON,
        encoding="",
        token_factor=1.3,
        timeout_seconds=60.0,
        temperature=0.0,
    )
    assert (path, "local", ("ghp_[A-Za-z0-9]{36}",)) == (settings.path, settings.model, settings.redact)
    assert local == settings.models["local"]
    assert local == resolve_profile(settings, "")


def test_the_file_is_found_by_flag_then_variable_then_directory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--config` beats `$GOALMODE_CONFIG`, which beats the user's directory; without any there are defaults."""
    home = tmp_path / "config"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    assert Settings() == load_settings(None, {})

    (home / "goalmode").mkdir(parents=True)
    (home / "goalmode" / "goalmode.toml").write_text('[defaults]\nmodel = "openai:home"')
    other = tmp_path / "other.toml"
    other.write_text('[defaults]\nmodel = "openai:variable"')
    given = write('[defaults]\nmodel = "openai:flag"')

    environ = {"GOALMODE_CONFIG": str(other)}
    found = [load_settings(None, {}), load_settings(None, environ), load_settings(given, environ)]
    assert [settings.model for settings in found] == ["openai:home", "openai:variable", "openai:flag"]


def test_a_file_in_the_working_directory_is_not_read(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workspace cannot choose where keys are sent."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    write('[defaults]\nmodel = "openai:workspace"')
    monkeypatch.chdir(tmp_path)

    assert Settings() == load_settings(None, {})


WRONG = {
    "unknown section": ("[model.a]\n", "model: unknown key; known are defaults, models, redact, prices"),
    "prices of another type": ("prices = 3\n", "prices: '3' is not valid: a table, [prices]"),
    "price of another type": ("[prices]\na = 3\n", "prices.a: '3' is not valid: a table, [prices.a]"),
    "price's key": (
        "[prices.a]\nprompt = 1\n",
        "prices.a.prompt: unknown key; known are input, cached, output, cache_write",
    ),
    "price without output": (
        "[prices.a]\ninput = 1\n",
        "prices.a: 'input' is not valid: output too, dollars for",
    ),
    "price without input": (
        "[prices.a]\noutput = 1\n",
        "prices.a: 'output' is not valid: input too, dollars for",
    ),
    "empty price": ("[prices.a]\n", "prices.a: '' is not valid: input too, dollars for"),
    "negative price": (
        "[prices.a]\ninput = -1\n",
        "prices.a.input: '-1' is not valid: dollars for a million",
    ),
    "price too fine": (
        "[prices.a]\ninput = 0.0000001\n",
        "prices.a.input: '0.0000001' is not valid: dollars",
    ),
    "price too fine for a float": (
        "[prices.a]\noutput = 1.00000000000000000001\n",
        "prices.a.output: '1.00000000000000000001' is not valid: dollars for a million tokens, from 0",
    ),
    "price that is no number": ("[prices.a]\ncached = nan\n", "prices.a.cached: 'nan' is not valid: dollars"),
    "price as words": ('[prices.a]\ncached = "cheap"\n', "prices.a.cached: 'cheap' is not valid: dollars"),
    "boolean price": (
        "[prices.a]\ncache_write = true\n",
        "prices.a.cache_write: 'True' is not valid: dollars",
    ),
    "name with a dot": (
        "[prices.gpt-4.1]\ninput = 2\noutput = 8\n",
        """prices: 'gpt-4.1' is not valid: quotes around a name with a dot: [prices."a.b"]""",
    ),
    "unknown key": (
        '[models.a]\nkey = "sk-canary"\n',
        "models.a.key: unknown key; known are wire, name, base_url",
    ),
    "unknown default": ("[defaults]\nturns = 3\n", "defaults.turns: unknown key; known are model"),
    "section of another type": ("models = 3\n", "models: '3' is not valid: a table, [models]"),
    "profile of another type": ("[models]\na = 3\n", "models.a: '3' is not valid: a table, [models.a]"),
    "wire": ('[models.a]\nwire = "telnet"\n', "models.a.wire: 'telnet' is not valid: openai"),
    "flag": (
        "[models.a]\nreplay_reasoning = 1\n",
        "models.a.replay_reasoning: '1' is not valid: true or false",
    ),
    "call ids": (
        '[models.a]\ncall_ids = "uuid"\n',
        "models.a.call_ids: 'uuid' is not valid: plain or mistral",
    ),
    "name": ('[models.a]\nname = " "\n', "models.a.name: ' ' is not valid"),
    "url": (
        '[models.a]\nbase_url = "localhost:80"\n',
        "models.a.base_url: 'localhost:80' is not valid: an http",
    ),
    "secret in url": (
        '[models.a]\nbase_url = "ftp://me:canary@host/?api_key=canary"\n',
        "models.a.base_url: 'ftp://[redacted]@host/?api_key=[redacted]' is not valid",
    ),
    "key itself": (
        '[models.a]\napi_key_env = "sk-1"\n',
        "models.a.api_key_env: 'sk-1' is not valid: the name of an env",
    ),
    "text for number": (
        '[models.a]\nwindow = "big"\n',
        "models.a.window: 'big' is not valid: a whole number",
    ),
    "boolean for number": (
        "[models.a]\nwindow = true\n",
        "models.a.window: 'True' is not valid: a whole number",
    ),
    "zero": ("[models.a]\nmax_output = 0\n", "models.a.max_output: '0' is not valid: a whole number"),
    "fraction": ("[models.a]\nwindow = 1.5\n", "models.a.window: '1.5' is not valid: a whole number"),
    "protocol": ('[models.a]\nprotocol = "xml"\n', "models.a.protocol: 'xml' is not valid: native or json"),
    "protocol type": (
        "[models.a]\nprotocol = [1]\n",
        "models.a.protocol: '[1]' is not valid: native or json",
    ),
    "encoding": ('[models.a]\nencoding = "cl100k"\n', "models.a.encoding: 'cl100k' is not valid: o200k_base"),
    "factor": (
        "[models.a]\ntoken_factor = 0\n",
        "models.a.token_factor: '0' is not valid: a number from 0.1",
    ),
    "nan": ("[models.a]\ntoken_factor = nan\n", "models.a.token_factor: 'nan' is not valid"),
    "timeout": ("[models.a]\ntimeout_seconds = -1\n", "models.a.timeout_seconds: '-1' is not valid"),
    "temperature": (
        "[models.a]\ntemperature = 3\n",
        "models.a.temperature: '3' is not valid: a number from 0 to 2",
    ),
    "output beyond window": (
        "[models.a]\nwindow = 4096\nmax_output = 4096\n",
        "models.a.max_output: '4096' is not valid: less than the window, 4096",
    ),
    "context beyond window": (
        "[models.a]\nwindow = 4096\nmax_output = 2000\ncontext_tokens = 3000\n",
        "models.a.max_output: '2000' is not valid: with context_tokens (3000) at most the window, 4096",
    ),
    "default": (
        '[models.a]\n[defaults]\nmodel = "b"\n',
        "defaults.model: 'b' is not valid: openai:NAME, openai-responses:NAME, anthropic:NAME or one of [models]: a",
    ),
    "default type": ("[defaults]\nmodel = 3\n", "defaults.model: '3' is not valid"),
    "profile like a scheme": ('[models."openai:x"]\n', "models: 'openai:x' is not valid"),
    "patterns": ('[redact]\npatterns = "x"\n', "redact.patterns: 'x' is not valid: a list"),
    "pattern": (
        '[redact]\npatterns = ["("]\n',
        "redact.patterns: '(' is not valid: a regular expression (missing )",
    ),
    "empty pattern": (
        '[redact]\npatterns = ["x*"]\n',
        "redact.patterns: 'x*' is not valid: a regular expression that",
    ),
    "newline in a key": ('[models.a]\n"x\\ny" = 1\n', "models.a.x\\ny: unknown key"),
    "sandbox key": ('[sandbox]\nwrite = ["/"]', "sandbox.write: unknown key; known are mode, read, env"),
    "sandbox mode": ('[sandbox]\nmode = "docker"', "sandbox.mode: 'docker' is not valid: auto or bwrap"),
    "sandbox read": ('[sandbox]\nread = "/opt"', "sandbox.read: '/opt' is not valid: a list of paths"),
    "sandbox relative": ('[sandbox]\nread = ["opt"]', "a list of paths that begin with / or ~/"),
    "sandbox env": ('[sandbox]\nenv = ["A=b"]', "a list of names of environment variables"),
    "sandbox no table": ('sandbox = "none"', "sandbox: 'none' is not valid: a table, [sandbox]"),
    "syntax": ("[models\n", "not valid TOML: "),
    "syntax with line": ('\n\nmodel = "\n', "line 3"),
}


@pytest.mark.parametrize(("content", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line(write: Write, content: str, said: str) -> None:
    """File, key, value and what would be right, on one line, and no secret in it."""
    path = write(content)
    with pytest.raises(ConfigError) as caught:
        load_settings(path, {})

    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert said in message
    assert message.isprintable()
    assert "canary" not in message


def test_the_sandbox_that_is_configured(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths of the home directory, names of variables; the environment's word comes before the file's."""
    monkeypatch.setenv("HOME", "/people/me")
    path = write('[sandbox]\nmode = "landlock"\nread = ["~/.rustup", "/data"]\nenv = ["CC"]')

    found = load_settings(path, {}).sandbox
    assert found == SandboxSettings("landlock", ("/people/me/.rustup", "/data"), ("CC",))
    assert load_settings(path, {"GOALMODE_SANDBOX": "none"}).sandbox == replace(found, mode="none")
    assert load_settings(None, {"GOALMODE_SANDBOX": ""}).sandbox == SandboxSettings("auto")
    with pytest.raises(ConfigError, match=r"^\$GOALMODE_SANDBOX: 'off' is not valid: auto or bwrap"):
        load_settings(path, {"GOALMODE_SANDBOX": "off"})


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path) -> None:
    """Missing, a directory, not UTF-8: each is told with its path."""
    (tmp_path / "latin").write_bytes(b'x = "\xe9"')

    for path, said in [
        (tmp_path / "none", "there is no such file"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "latin", "not UTF-8"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load_settings(path, {})
        assert f"{path}: {said}" in str(caught.value)
    with pytest.raises(ConfigError, match="no such file"):
        load_settings(None, {"GOALMODE_CONFIG": str(tmp_path / "none")})


def test_a_model_of_openais_needs_no_profile() -> None:
    """`openai:NAME` is enough: OpenAI's server, its key, its vocabulary."""
    profile = resolve_profile(Settings(), "openai:gpt-5-mini")

    assert (
        profile.spec,
        profile.name,
        profile.base_url,
        profile.api_key_env,
    ) == ("openai:gpt-5-mini", "gpt-5-mini", "https://api.openai.com/v1", "OPENAI_API_KEY")
    assert (profile.encoding, profile.token_factor) == ("o200k_base", 1.0)


def test_openais_responses_have_a_scheme_of_their_own() -> None:
    """`openai-responses:NAME` is the same server, key and vocabulary by another wire format."""
    profile = resolve_profile(Settings(), "openai-responses:gpt-5-mini")

    assert (profile.wire, profile.name) == ("openai-responses", "gpt-5-mini")
    assert (profile.base_url, profile.api_key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")
    assert profile.encoding == "o200k_base"


def test_a_server_can_be_known_by_its_habits(write: Write) -> None:
    """Each flag of a compatible server is read; without them a server is OpenAI's equal."""
    flags = "replay_reasoning = true\nsilent_truncation = true\nuser_after_tool = false\n"
    models = load_settings(
        write(f'[models.a]\nwire = "openai-responses"\n[models.b]\ncall_ids = "mistral"\n{flags}'), {}
    ).models

    a, b = models["a"], models["b"]
    assert a.wire == "openai-responses"
    plain = (a.call_ids, a.replay_reasoning, a.silent_truncation, a.user_after_tool)
    assert plain == (CallIds.PLAIN, False, False, True)
    odd = (b.call_ids, b.replay_reasoning, b.silent_truncation, b.user_after_tool)
    assert odd == (CallIds.MISTRAL, True, True, False)


def test_a_model_of_anthropics_needs_no_profile() -> None:
    """`anthropic:NAME` is enough: Anthropic's wire format, server and key; its vocabulary is not known."""
    profile = resolve_profile(Settings(), "anthropic:claude-x")

    assert (profile.wire, profile.name) == ("anthropic", "claude-x")
    assert (profile.base_url, profile.api_key_env) == ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY")
    assert (profile.encoding, profile.token_factor) == ("", 1.2)
    with pytest.raises(BadInput, match=r"api\.anthropic\.com") as caught:
        api_key(profile, {"OPENAI_API_KEY": "sk-1"})
    assert "ANTHROPIC_API_KEY" in str(caught.value)


def test_a_profile_names_its_wire_format(write: Write) -> None:
    """A profile's server and key follow from its wire format unless they are given."""
    models = load_settings(
        write('[models.a]\nwire = "anthropic"\n[models.b]\nwire = "anthropic"\nbase_url = "http://x/v1"\n'),
        {},
    ).models

    assert models["a"].base_url == "https://api.anthropic.com/v1"
    assert (models["b"].wire, models["b"].base_url) == ("anthropic", "http://x/v1")


@pytest.mark.parametrize(
    ("name", "encoding", "factor"),
    [
        ("gpt-4o", "o200k_base", 1.0),
        ("gpt-4o-mini-2024-07-18", "o200k_base", 1.0),
        ("gpt-4.1-nano", "o200k_base", 1.0),
        ("openai/gpt-5.1", "o200k_base", 1.0),
        ("o3", "o200k_base", 1.0),
        ("o4-mini", "o200k_base", 1.0),
        ("gpt-4", "", 1.2),
        ("qwen3-8b", "", 1.2),
        ("o3000", "", 1.2),
        ("a/b:c", "", 1.2),
    ],
)
def test_an_unknown_vocabulary_gets_a_margin(name: str, encoding: str, factor: float) -> None:
    """Only models known to use o200k are counted without a margin."""
    profile = resolve_profile(Settings(), f"openai:{name}")

    assert (name, encoding, factor) == (profile.name, profile.encoding, profile.token_factor)


PRICES = """
[models.mine]
name = "gpt-5-mini"
[models.local]
name = "qwen3-8b"
temperature = 0.5
[prices."gpt-5-mini"]
input = 0.25
cached = "0.025"
output = 2
cache_write = 2.5e-1
[prices."qwen3-8b"]
input = 0
output = 0
[prices."gpt-4.1"]
input = 1.000001
output = 8.1
"""


def test_prices_are_exact(write: Write) -> None:
    """In micro-dollars, out of numbers and texts; the cache costs as much as other input unless it is said."""
    prices = load_settings(write(PRICES), {}).prices

    assert prices == {
        "gpt-5-mini": Price(input=250_000, cached=25_000, output=2_000_000, cache_write=250_000),
        "qwen3-8b": Price(0, 0, 0, 0),
        "gpt-4.1": Price(input=1_000_001, cached=1_000_001, output=8_100_000, cache_write=1_000_001),
    }


def test_a_price_belongs_to_the_provider_s_name(write: Write) -> None:
    """Whichever way a model is named; one that costs nothing has a price, one that is not listed has none."""
    settings = load_settings(write(PRICES), {})
    price = {
        spec: resolve_profile(settings, spec).price
        for spec in ("mine", "openai:gpt-5-mini", "openai-responses:gpt-5-mini", "local", "openai:mine")
    }

    mini = settings.prices["gpt-5-mini"]
    assert price == {
        "mine": mini,
        "openai:gpt-5-mini": mini,
        "openai-responses:gpt-5-mini": mini,
        "local": Price(0, 0, 0, 0),
        "openai:mine": None,
    }
    assert settings.models["local"].temperature == 0.5


def test_a_small_window_shrinks_what_is_not_given(write: Write) -> None:
    """Output and context fit the window unless the user says otherwise."""
    settings = load_settings(write("[models.tiny]\nwindow = 2048\n"), {})

    assert (settings.models["tiny"].max_output, settings.models["tiny"].context_tokens) == (512, 1024)


def test_the_command_line_overrides_a_profile(write: Write) -> None:
    """Base URL and key variable of the command line win."""
    settings = load_settings(write(WHOLE), {})
    profile = resolve_profile(settings, "local", "https://example.com/v1/", "OTHER_KEY")

    assert (
        profile.base_url,
        profile.api_key_env,
        profile.name,
    ) == ("https://example.com/v1", "OTHER_KEY", "qwen3-8b")


def test_openais_key_is_not_offered_to_this_machine() -> None:
    """A server on loopback gets a key only if one is named for it."""
    environ = {"OPENAI_API_KEY": "sk-1", "MINE": "k"}
    implicit = resolve_profile(Settings(), "openai:x", "http://localhost:8080/v1")
    named = resolve_profile(Settings(), "openai:x", "http://localhost:8080/v1", "MINE")

    assert (api_key(implicit, environ), api_key(named, environ)) == (None, "k")


@pytest.mark.parametrize("spec", ["", "gpt-5", "openai:", "anthropic: ", "gemini:x", "LOCAL"])
def test_an_unknown_model_is_told_with_the_known_ones(write: Write, spec: str) -> None:
    """What was given, and what there is."""
    settings = replace(load_settings(write(WHOLE), {}), model="")
    with pytest.raises(BadInput) as caught:
        resolve_profile(settings, spec)

    names = "openai:NAME, openai-responses:NAME, anthropic:NAME or a profile of goalmode.toml: big, local"
    assert str(caught.value) == f"model: {spec!r} is not valid: {names}"


@pytest.mark.parametrize(
    "url", ["localhost:80", "ftp://x/v1", "http://", "http://h:99999/v1", "http://me:canary@/v1"]
)
def test_a_base_url_that_is_none_is_refused(url: str) -> None:
    """A wrong base URL is told without what may be secret in it."""
    with pytest.raises(BadInput, match="base-url") as caught:
        resolve_profile(Settings(), "openai:x", url)

    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/v1", "http://127.9.9.9/v1", "http://[::1]:1/v1", "http://localhost/v1"]
)
def test_loopback_needs_no_key(url: str) -> None:
    """A server on this machine is talked to without a key."""
    assert api_key(resolve_profile(Settings(), "openai:x", url), {}) is None


@pytest.mark.parametrize("url", ["https://me:pw@example.com/v1", "https://example.com/v1?api_key=x"])
def test_credentials_in_the_url_are_enough(url: str) -> None:
    """No second key is demanded."""
    assert api_key(resolve_profile(Settings(), "openai:x", url), {}) is None


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_key_names_its_variable(value: str | None) -> None:
    """One line says which environment variable must hold the key, and for whom."""
    environ = {} if value is None else {"OPENAI_API_KEY": value}
    with pytest.raises(BadInput) as caught:
        api_key(resolve_profile(Settings(), "openai:x"), environ)

    assert "OPENAI_API_KEY" in str(caught.value)
    assert "api.openai.com" in str(caught.value)


def test_a_key_is_trimmed_and_checked() -> None:
    """A stray newline is forgiven; what no header can carry is refused unseen."""
    profile = resolve_profile(Settings(), "openai:x")

    assert api_key(profile, {"OPENAI_API_KEY": " sk-1\n"}) == "sk-1"
    with pytest.raises(BadInput) as caught:
        api_key(profile, {"OPENAI_API_KEY": "canary\x00é"})
    assert "canary" not in str(caught.value)
