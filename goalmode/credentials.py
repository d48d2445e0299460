"""What lets somebody in: the keys of models and what MCP servers are given to identify themselves with.

It is struck out of all that is stored or shown, and kept from the processes that work for a goal. One place says what
it is, so that a run, a server, a check and the screen know the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from goalmode import servers
from goalmode.domain.profile import ModelProfile
from goalmode.domain.redact import SHORTEST, Redactor, url_secrets
from goalmode.model.address import PROVIDERS
from goalmode.settings import Settings

_TRACING = frozenset({"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"})
"""Variables by which OpenTelemetry identifies itself."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is known of them. Two are joined by `|`; what is known is never less than before.

    Attributes:
        texts: struck out, as is what matches `patterns`.
        names: environment variables that hold one, or may.
        kept: texts that no variable of a tool's process holds, whatever it is called.
    """

    texts: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()
    kept: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def __or__(self, more: Credentials) -> Credentials:
        return Credentials(
            _each_once((*self.texts, *more.texts)),
            self.names | more.names,
            _each_once((*self.kept, *more.kept)),
            _each_once((*self.patterns, *more.patterns)),
        )

    @property
    def redact(self) -> Redactor:
        return Redactor(self.texts, self.patterns)

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Of the tools' processes: ours, without credentials and without our own settings."""
        return {
            name: value
            for name, value in environ.items()
            if name not in self.names
            and not name.startswith("GOALMODE_")
            and (name in servers.ORDINARY or not self._holds_one(value))
        }

    def _holds_one(self, value: str) -> bool:
        return any(len(text) >= SHORTEST and text in value for text in self.kept)


def credentials(settings: Settings, environ: Mapping[str, str], *more: ModelProfile) -> Credentials:
    """All that this user has configured: of every model and every MCP server, in use or not, and of `more` models."""
    models = of_models((*settings.models.values(), *more), environ)
    return (
        models
        | _of_store(environ)
        | _of_tracing(environ)
        | _of_servers(settings, environ)
        | Credentials(patterns=settings.redact)
    )


def _of_store(environ: Mapping[str, str]) -> Credentials:
    """The password of a PostgreSQL server, as its own programs and ours look for it."""
    own = environ.get("PGPASSWORD", "")
    found = (*([own] if own else []), *password_of(environ.get("GOALMODE_STORE", "")))
    return Credentials(found, frozenset({"PGPASSWORD"}), found)


def _of_tracing(environ: Mapping[str, str]) -> Credentials:
    """What lets somebody in where spans are sent: `authorization=Bearer%20…`, one header after another."""
    queries = ["?" + environ.get(name, "").replace(",", "&") for name in sorted(_TRACING)]
    texts = [text for query in queries for text in url_secrets(query)]
    found = _each_once((*texts, *(text.rpartition(" ")[2] for text in texts)))
    return Credentials(found, _TRACING, found)


def password_of(store: str) -> tuple[str, ...]:
    """The password in a store's URL, as it is written and as it is meant. Its user lets nobody in."""
    with suppress(ValueError):
        if password := urlsplit(store).password:
            return _each_once((password, unquote(password)))
    return ()


def of_models(profiles: Iterable[ModelProfile], environ: Mapping[str, str]) -> Credentials:
    """The keys of all providers and of these models, and what in their addresses lets somebody in."""
    models = tuple(profiles)
    names = {*(provider.key for provider in PROVIDERS.values()), *(model.api_key_env for model in models)}
    texts = [text for name in sorted(names) for text in of_address(name, "", environ)]
    texts += [text for model in models for text in url_secrets(model.base_url)]
    found = _each_once(texts)
    return Credentials(found, frozenset(names - {""}), found)


def of_address(api_key_env: str, base_url: str, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What lets somebody in at one model's server."""
    key = environ.get(api_key_env, "").strip() if api_key_env else ""
    return (*([key] if key else []), *url_secrets(base_url))


def _of_servers(settings: Settings, environ: Mapping[str, str]) -> Credentials:
    """What `[sandbox] env` names is given to commands all the same: that is what it says. It is struck out."""
    texts, given = servers.secrets_of(settings.mcp, environ), settings.sandbox.env
    kept = [text for text in texts if not any(text in environ.get(name, "") for name in given)]
    return Credentials(texts, servers.variables_of(settings.mcp) - set(given), tuple(kept))


def _each_once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
