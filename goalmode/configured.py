"""What is a goal run with, as its user has configured it: model, credentials, templates, sandbox and MCP servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from goalmode.context.render import Prompts, package_prompts
from goalmode.credentials import Credentials, credentials
from goalmode.domain.goal import Goal
from goalmode.domain.outside import Server
from goalmode.domain.profile import ModelProfile
from goalmode.domain.redact import Redactor
from goalmode.domain.sandbox import SandboxSettings
from goalmode.orchestrator.costs import refuse_unpriced
from goalmode.servers import resolve
from goalmode.settings import Settings, api_key, load_settings, path_of, resolve_profile
from goalmode.state.store import Store
from goalmode.tools.confinement import Confinement
from goalmode.tools.sandbox import from_here, sandbox_for


@dataclass(frozen=True)
class Configured:
    """A goal's model as the user's configuration describes it: profile, key, and all that lets somebody in."""

    profile: ModelProfile
    key: str | None
    credentials: Credentials
    prompts: Prompts
    sandboxing: SandboxSettings = SandboxSettings()
    servers: tuple[Server, ...] = ()


def configure(goal: Goal, config: Path | None, environ: Mapping[str, str]) -> Configured:
    """Resolve the goal's model with the user's `goalmode.toml` and environment.

    Raises:
        ConfigError: the file is wrong. BadInput: no such model, no key in the environment, or a limit of money for
            a model without a price.
    """
    settings = load_settings(config, environ)
    profile = goal_profile(goal, settings)
    refuse_unpriced(goal.limits, profile)
    key = api_key(profile, environ)
    known = credentials(settings, environ, profile)
    servers = resolve(goal.settings.mcp, settings.mcp, environ)
    sandboxing = _sandboxing(settings, config, environ)
    return Configured(profile, key, known, user_prompts(settings), sandboxing, servers)


def for_checks(
    store: Store, goal: Goal, config: Path | None, environ: Mapping[str, str]
) -> tuple[dict[str, str], Redactor, Confinement]:
    """What checks outside of a wakeup are run with: their environment, what is struck out of their output, and what
    they are started in, which is to be closed. It takes no key.

    Raises:
        ConfigError: the file is wrong. BadInput: no such model, or no such sandbox here.
    """
    settings = load_settings(config, environ)
    known = credentials(settings, environ, goal_profile(goal, settings))
    environment = known.environment(environ)
    sandboxing = _sandboxing(settings, config, environ)
    sandbox = sandbox_for(Path(goal.workspace), goal.settings, sandboxing, environment)
    confinement = sandbox.keeping_store(store.path).confinement()
    return environment, known.redact, confinement


def _sandboxing(settings: Settings, config: Path | None, environ: Mapping[str, str]) -> SandboxSettings:
    """As configured, and the file kept from commands too: who could write it would choose where keys are sent."""
    return replace(settings.sandbox, private=(str(from_here(path_of(config, environ))),))


def goal_profile(goal: Goal, settings: Settings) -> ModelProfile:
    own = goal.settings
    return resolve_profile(settings, own.model, own.base_url, own.api_key_env)


def user_prompts(settings: Settings) -> Prompts:
    """The package's templates, with those of the user's configuration directory in their place."""
    overrides = None if settings.path is None else settings.path.parent / "templates"
    return Prompts(overrides) if overrides is not None and overrides.is_dir() else package_prompts()
