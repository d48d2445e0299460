"""The user's `goalmode.toml`, and which model a goal talks to.

    [defaults]
    model = "local"

    [models.local]
    base_url = "http://127.0.0.1:8080/v1"
    name = "qwen3-8b"
    window = 32768

    [prices."gpt-5-mini"]
    input = 0.25
    cached = 0.025
    output = 2

    [redact]
    patterns = ["ghp_[A-Za-z0-9]{36}"]

    [sandbox]
    read = ["~/.rustup"]

A price is dollars for a million tokens, and belongs to the model's name at its provider. Tokens read from the
provider's cache cost as much as others where `cached` is not given, and so do those written to it (`cache_write`).

The file is the user's own: `--config`, else `$GOALMODE_CONFIG`, else the configuration directory. One found in a
workspace is never read: whoever writes there would choose where keys are sent.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goalmode import servers
from goalmode.domain.address import is_web_address
from goalmode.domain.cost import Price, micro_dollars
from goalmode.domain.profile import CallIds, ModelProfile, Protocol
from goalmode.domain.redact import Redactor
from goalmode.domain.sandbox import AUTO, CHOICES, SandboxSettings
from goalmode.domain.text import one_line
from goalmode.errors import BadInput, ConfigError
from goalmode.model.address import PROVIDERS, is_loopback

FILE = "goalmode.toml"
ENVIRONMENT = "GOALMODE_CONFIG"
SANDBOX = "GOALMODE_SANDBOX"

O200K = "o200k_base"
_O200K_MODELS = re.compile(r"(?:.*/)?(?:gpt-4o|gpt-4\.1|gpt-4\.5|gpt-5|chatgpt-4o|o[1-9])(?:[.:-].*)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
UNKNOWN_FACTOR = 1.2
"""Real tokens per o200k token for a tokenizer we do not have: a margin, between 1.15 and 1.35 seen."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user has configured.

    Attributes:
        path: the file read, None without one.
        model: what a goal uses that names no model: `openai:NAME` or a profile's name; empty for none.
        models: the profiles, by name.
        redact: regular expressions of further secrets.
        prices: of models, by their providers' names for them.
        mcp: the MCP servers, by name; see `goalmode.servers`.
        sandbox: of goals that name none; its mode is `$GOALMODE_SANDBOX` where that is set.
    """

    path: Path | None = None
    model: str = ""
    models: Mapping[str, ModelProfile] = field(default_factory=dict)
    redact: tuple[str, ...] = ()
    prices: Mapping[str, Price] = field(default_factory=dict)
    mcp: Mapping[str, servers.Configured] = field(default_factory=dict)
    sandbox: SandboxSettings = SandboxSettings()


def load_settings(config: Path | None, environ: Mapping[str, str]) -> Settings:
    """Read the file, if there is one, and the environment.

    Args:
        config: given on the command line; it must exist. Else the path in `$GOALMODE_CONFIG` must exist if set.

    Raises:
        ConfigError: it cannot be read, is not TOML, or holds a key or value that is wrong.
    """
    settings = _read(config, environ)
    mode = environ.get(SANDBOX) or settings.sandbox.mode
    if mode not in CHOICES:
        raise ConfigError(f"${SANDBOX}: {mode!r} is not valid: {' or '.join(CHOICES)}")
    return replace(settings, sandbox=replace(settings.sandbox, mode=mode))


def path_of(config: Path | None, environ: Mapping[str, str]) -> Path:
    """Where the file is, or would be."""
    return config or (Path(environ[ENVIRONMENT]) if environ.get(ENVIRONMENT) else default_path())


def _read(config: Path | None, environ: Mapping[str, str]) -> Settings:
    path = path_of(config, environ)
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        if config is None and not environ.get(ENVIRONMENT):
            return Settings()
        raise ConfigError(f"{path}: there is no such file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        table = tomllib.loads(text)
        if "prices" in table:  # As written: a float would be another number.
            table["prices"] = tomllib.loads(text, parse_float=str)["prices"]
        return _settings(path, table)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def resolve_profile(settings: Settings, spec: str, base_url: str = "", api_key_env: str = "") -> ModelProfile:
    """The profile that `spec` names, with its price; without one, the configured default.

    `base_url` and `api_key_env` override the profile's.

    Raises:
        BadInput: no such profile or scheme, or a base URL that is none.
    """
    if api_key_env and not _NAME.fullmatch(api_key_env):
        raise BadInput(
            "api-key-env", Redactor()(api_key_env), "the name of an environment variable, not what it holds"
        )
    spec = spec or settings.model
    profile = settings.models.get(spec)
    if profile is None:
        scheme, _, name = spec.partition(":")
        if scheme not in PROVIDERS or not name.strip():
            known = f": {', '.join(sorted(settings.models))}" if settings.models else ""
            raise BadInput("model", spec, f"{_NAMES} or a profile of {FILE}{known}")
        profile = _profile(spec, {"wire": scheme, "name": name.strip()}, _never)
    if base_url:
        if not is_web_address(base_url):
            raise BadInput("base-url", Redactor()(base_url), _URL)
        profile = replace(profile, base_url=base_url.rstrip("/"))
    name = api_key_env or profile.api_key_env
    if not name and not is_loopback(urlsplit(profile.base_url).hostname or ""):
        name = PROVIDERS[profile.wire].key  # never sent to a server on this machine unless it is asked for
    return replace(profile, api_key_env=name, price=settings.prices.get(profile.name))


def api_key(profile: ModelProfile, environ: Mapping[str, str]) -> str | None:
    """The key for the profile's server, None where none is needed: on loopback, or with credentials in the URL.

    Raises:
        BadInput: the environment variable is not set, or holds what no HTTP header can carry.
    """
    name = profile.api_key_env
    key = environ.get(name, "").strip() if name else ""
    if key:
        if key.isascii() and key.isprintable():
            return key
        raise BadInput("api-key-env", name, "a variable whose value is printable ASCII")
    parts = urlsplit(profile.base_url)
    if is_loopback(parts.hostname or "") or parts.password or parts.query:
        return None
    expected = f"that environment variable is not set; it must hold the key for {parts.hostname}"
    raise BadInput("api-key-env", name or PROVIDERS[profile.wire].key, expected)


Wrong = Callable[[str, object, str], ConfigError]
"""(key, value, what would be right) -> the error."""


def _settings(path: Path, table: Mapping[str, Any]) -> Settings:
    def wrong(key: str, value: object, expected: str) -> ConfigError:
        shown = one_line(Redactor()(value if isinstance(value, str) else repr(value)), 80)
        return ConfigError(f"{path}: {key}: {shown!r} is not valid: {expected}")

    known = ("defaults", "models", "redact", "prices", "sandbox", "mcp")
    _known_keys(table, known, "", path)
    tables = {key: _table(table.get(key, {}), key, wrong) for key in known}
    _known_keys(tables["defaults"], ("model",), "defaults.", path)
    _known_keys(tables["redact"], ("patterns",), "redact.", path)
    _known_keys(tables["sandbox"], ("mode", "read", "env"), "sandbox.", path)
    models: dict[str, ModelProfile] = {}
    for name, given in tables["models"].items():
        prefix = f"models.{name}"
        fields = _table(given, prefix, wrong)
        _known_keys(fields, tuple(_FIELDS), f"{prefix}.", path)
        scheme, colon, _ = name.partition(":")
        if colon and scheme in PROVIDERS:
            raise wrong("models", name, f"a name that does not begin with {scheme}:")
        models[name] = _profile(name, fields, wrong)
    default = _default(tables["defaults"], models, wrong)
    prices = {name: _price(name, given, wrong, path) for name, given in tables["prices"].items()}
    patterns, sandbox = _patterns(tables["redact"], wrong), _sandbox(tables["sandbox"], wrong)
    mcp = {name: _server(name, given, wrong, path) for name, given in tables["mcp"].items()}
    return Settings(path, default, models, patterns, prices, mcp, sandbox)


def _server(name: str, value: object, wrong: Wrong, path: Path) -> servers.Configured:
    given = _table(value, f"mcp.{name}", wrong)
    _known_keys(given, tuple(servers.KEYS), f"mcp.{name}.", path)
    return servers.read_server(name, given, wrong)


def _price(name: str, value: object, wrong: Wrong, path: Path) -> Price:
    """A price, exactly as written."""
    prefix = f"prices.{name}"
    given = _table(value, prefix, wrong)
    for key in given:
        if isinstance(given[key], dict):
            raise wrong("prices", f"{name}.{key}", 'quotes around a name with a dot: [prices."a.b"]')
    _known_keys(given, ("input", "cached", "output", "cache_write"), f"{prefix}.", path)
    read: dict[str, int] = {}
    for key, amount in given.items():
        micro = _micro_dollars(amount)
        if micro is None:
            raise wrong(f"{prefix}.{key}", amount, _DOLLARS)
        read[key] = micro
    for key in ("input", "output"):
        if key not in read:
            raise wrong(prefix, ", ".join(read), f"{key} too, {_DOLLARS}")
    return Price(
        input=read["input"],
        cached=read.get("cached", read["input"]),
        output=read["output"],
        cache_write=read.get("cache_write", read["input"]),
    )


def _micro_dollars(amount: object) -> int | None:
    """The amount in micro-dollars, None for what is none."""
    if isinstance(amount, bool) or not isinstance(amount, int | str):
        return None
    try:
        return micro_dollars(str(amount))
    except ValueError:
        return None


def _default(defaults: Mapping[str, Any], models: Mapping[str, ModelProfile], wrong: Wrong) -> str:
    spec = defaults.get("model", "")
    scheme, _, name = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if "model" in defaults and spec not in models and not (scheme in PROVIDERS and name):
        raise wrong("defaults.model", spec, f"{_NAMES} or one of [models]: {', '.join(sorted(models))}")
    return str(spec)


def _patterns(table: Mapping[str, Any], wrong: Wrong) -> tuple[str, ...]:
    patterns = table.get("patterns", [])
    if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
        raise wrong("redact.patterns", patterns, "a list of regular expressions")
    for pattern in patterns:
        try:
            empty = re.compile(pattern).search("") is not None
        except re.error as error:
            raise wrong("redact.patterns", pattern, f"a regular expression ({error})") from None
        if empty:
            raise wrong("redact.patterns", pattern, "a regular expression that does not match empty text")
    return tuple(patterns)


def _sandbox(table: Mapping[str, Any], wrong: Wrong) -> SandboxSettings:
    mode = table.get("mode", AUTO)
    if mode not in CHOICES:
        raise wrong("sandbox.mode", mode, " or ".join(CHOICES))
    read, names = table.get("read", []), table.get("env", [])
    expected = "a list of paths that begin with / or ~/"
    if not isinstance(read, list) or not all(isinstance(p, str) and p.startswith(("/", "~/")) for p in read):
        raise wrong("sandbox.read", read, expected)
    if not isinstance(names, list) or not all(isinstance(n, str) and _NAME.fullmatch(n) for n in names):
        raise wrong("sandbox.env", names, "a list of names of environment variables")
    places = tuple(str(Path(p).expanduser()) for p in read)
    return SandboxSettings(mode, places, tuple(names))


@dataclass(frozen=True, slots=True)
class _Field:
    fits: Callable[[Any], bool]
    expected: str
    read: Callable[[Any], Any] = lambda value: value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_number(value: object, low: float, high: float = float("inf")) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _is_count(value: object) -> bool:
    return isinstance(value, int) and _is_number(value, 1, 100_000_000)


_URL = "an http or https address up to and including the version, such as https://api.openai.com/v1"
_DOLLARS = "dollars for a million tokens, from 0 and in whole micro-dollars, such as 0.25"
_COUNT = "a whole number of tokens above 0"
_FLAG = _Field(lambda v: isinstance(v, bool), "true or false")

_FIELDS: Mapping[str, _Field] = {
    "wire": _Field(lambda v: v in tuple(PROVIDERS), " or ".join(PROVIDERS)),
    "name": _Field(_is_text, "the model's name as the server knows it"),
    "base_url": _Field(is_web_address, _URL, lambda v: v.rstrip("/")),
    "api_key_env": _Field(
        lambda v: isinstance(v, str) and _NAME.fullmatch(v) is not None,
        "the name of an environment variable",
    ),
    "window": _Field(_is_count, _COUNT),
    "max_output": _Field(_is_count, _COUNT),
    "context_tokens": _Field(_is_count, _COUNT),
    "protocol": _Field(lambda v: v in tuple(Protocol), " or ".join(Protocol), Protocol),
    "encoding": _Field(lambda v: v in ("", O200K), f"{O200K}, or empty for an unknown one"),
    "token_factor": _Field(lambda v: _is_number(v, 0.1, 10), "a number from 0.1 to 10", float),
    "timeout_seconds": _Field(lambda v: _is_number(v, 0.001, 86_400), "a number of seconds above 0", float),
    "temperature": _Field(lambda v: _is_number(v, 0, 2), "a number from 0 to 2", float),
    "replay_reasoning": _FLAG,
    "silent_truncation": _FLAG,
    "call_ids": _Field(lambda v: v in tuple(CallIds), " or ".join(CallIds), CallIds),
    "user_after_tool": _FLAG,
}


_NAMES = ", ".join(f"{scheme}:NAME" for scheme in PROVIDERS)
_DEFAULTS = ModelProfile("", "", "", "")


def _profile(spec: str, given: Mapping[str, Any], wrong: Wrong) -> ModelProfile:
    """A profile out of checked and completed fields. What is not given is chosen to fit what is."""
    prefix = f"models.{spec}"
    for key, value in given.items():
        if not _FIELDS[key].fits(value):
            raise wrong(f"{prefix}.{key}", value, _FIELDS[key].expected)
    fields = {key: _FIELDS[key].read(value) for key, value in given.items()}
    name = fields.setdefault("name", spec)
    fields.setdefault("encoding", O200K if _O200K_MODELS.fullmatch(name) else "")
    fields.setdefault("token_factor", 1.0 if fields["encoding"] else UNKNOWN_FACTOR)
    window = fields.setdefault("window", _DEFAULTS.window)
    fields.setdefault("max_output", min(_DEFAULTS.max_output, max(1, window // 4)))
    fields.setdefault("context_tokens", min(_DEFAULTS.context_tokens, max(1, window // 2)))
    for key in ("max_output", "context_tokens"):
        if fields[key] >= window:
            raise wrong(f"{prefix}.{key}", fields[key], f"less than the window, {window}")
    if fields["max_output"] + fields["context_tokens"] > window:
        expected = f"with context_tokens ({fields['context_tokens']}) at most the window, {window}"
        raise wrong(f"{prefix}.max_output", fields["max_output"], expected)
    wire = fields.setdefault("wire", "openai")
    return ModelProfile(spec=spec, **{"base_url": PROVIDERS[wire].base_url, **fields})


def _table(value: object, key: str, wrong: Wrong) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise wrong(key, value, f"a table, [{key}]")
    return value


def _known_keys(table: Mapping[str, Any], known: tuple[str, ...], prefix: str, path: Path) -> None:
    for key in table:
        if key not in known:
            # The value is not shown: a key pasted here is the likeliest mistake.
            shown = one_line(f"{prefix}{key}", 80)
            raise ConfigError(f"{path}: {shown}: unknown key; known are {', '.join(known)}")


def _never(key: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"{key}: {value!r} is not valid: {expected}")


def default_path() -> Path:
    """Where the file is looked for if nobody says where it is."""
    from platformdirs import user_config_path

    return user_config_path("goalmode") / FILE
