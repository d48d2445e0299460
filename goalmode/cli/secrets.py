"""What must not be seen: the keys and patterns that this user has configured. Struck out of all that commands print.

Also out of all that they store, where a wakeup does not know more. What is known grows while a command runs: it
begins with the configuration, and a goal adds the key that it names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goalmode.domain.redact import Redactor, Redactors
from goalmode.errors import ConfigError

if TYPE_CHECKING:
    from goalmode.domain.goal import Goal

_known = Redactors()


def known() -> Redactors:
    """The one that every output and every store of this command goes through."""
    return _known


def forget() -> None:
    """Another command begins."""
    global _known
    _known = Redactors()


def learn(config: Path | None, store: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
    """Learn what the user has configured. A file that is wrong is the business of those that need it."""
    from goalmode.credentials import credentials, password_of
    from goalmode.settings import Settings, load_settings

    _known.add(Redactor(password_of(store or "")))
    settings = Settings()
    with suppress(ConfigError):
        settings = load_settings(config, environ)
    _known.add(credentials(settings, environ).redact)


def learn_goal(goal: Goal, environ: Mapping[str, str] = os.environ) -> None:
    """Learn what a goal's own settings name."""
    from goalmode.credentials import of_address

    secrets = of_address(goal.settings.api_key_env, goal.settings.base_url, environ)
    if secrets:
        _known.add(Redactor(secrets))


def struck(value: Any) -> Any:
    """A JSON value without secrets."""
    match value:
        case str():
            return _known(value)
        case Mapping():
            return {_known(str(key)): struck(item) for key, item in value.items()}
        case list() | tuple():
            return [struck(item) for item in value]
        case _:
            return value
