"""Is a directory a GenericAgent that goals can be woken in, and what about it will not work?"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from goalmode.domain.finding import Finding, State
from goalmode.reflect.hooks import EVENTS

FILES = ("agentmain.py", "agent_loop.py", "ga.py", "llmcore.py")
LOADER = {
    "mod.init(": "the loader of --reflect knows no init, so that --goal would not arrive",
    "'/exit'": "the loader of --reflect knows no /exit, so that the process would not end with its goal",
    "TOOLS_SCHEMA": "there is no list of tools to which ours could be added",
}
"""What `agentmain.py` has to hold, and what it means if it does not."""

_MAX = 2_000_000


def findings(root: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    """All of it, what goals stand or fall with first."""
    lacking = [name for name in FILES if not (root / name).is_file()]
    if lacking:
        yield Finding("checkout", State.BROKEN, f"{root}: no GenericAgent, it has no {lacking[0]}")
        return
    yield Finding("checkout", State.OK, f"{root}: {_version(root)}")
    hooks = list(_hooks(root))
    yield from hooks
    if any(found.state is State.BROKEN for found in hooks):
        yield Finding(
            "otherwise", State.OK, "pip install genericagent==1.0.7, then goalmode generic-agent run ID"
        )
    yield from _loader(root)
    yield _mykey(root)
    yield _cwd(root)
    yield from _surroundings(environ)


def _hooks(root: Path) -> Iterator[Finding]:
    plugin, loop = _read(root / "plugins" / "hooks.py"), _read(root / "agent_loop.py")
    if not plugin:
        yield Finding("hooks", State.BROKEN, "plugins/hooks.py is missing: this GenericAgent is too old")
        return
    missing = [event for event in EVENTS if not re.search(rf"['\"]{event}['\"]", loop)]
    if "def register" not in plugin or missing:
        what = f"its loop does not trigger {', '.join(missing)}" if missing else "it has no register"
        yield Finding("hooks", State.BROKEN, f"plugins/hooks.py is not the one we know: {what}")
        return
    yield Finding("hooks", State.OK, f"its loop triggers {', '.join(EVENTS)}")


def _loader(root: Path) -> Iterator[Finding]:
    main = _read(root / "agentmain.py")
    lacking = [told for mark, told in LOADER.items() if mark not in main.replace('"', "'")]
    for told in lacking:
        yield Finding("reflect", State.BROKEN, told)
    if not lacking:
        yield Finding("reflect", State.OK, "--reflect loads our file, and hands --goal on")


def _mykey(root: Path) -> Finding:
    found = next((name for name in ("mykey.py", "mykey.json") if (root / name).is_file()), "")
    if not found:
        return Finding("mykey", State.BROKEN, "no mykey.py and no mykey.json: it knows no model")
    text = _read(root / found)
    if not re.search(r"api|config|cookie", text):
        return Finding("mykey", State.BROKEN, f"{found} names no model")
    return Finding("mykey", State.OK, f"{found} is there; its keys are not looked at")


def _cwd(root: Path) -> Finding:
    sop = root / "memory" / "memory_management_sop.md"
    if not sop.is_file():
        return Finding("cwd", State.WARNING, "memory/memory_management_sop.md is missing")
    if Path.cwd().resolve() != root.resolve():
        return Finding("cwd", State.WARNING, f"start it in {root}: some of its paths are relative to that")
    return Finding("cwd", State.OK, str(root))


def _surroundings(environ: Mapping[str, str]) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:2]))
    yield Finding(
        "python",
        State.OK,
        f"{version}: goalmode must be installed where GenericAgent runs, with 3.11 or newer",
    )
    lang = environ.get("GA_LANG", "")
    yield Finding(
        "language",
        State.OK,
        f"GA_LANG is {lang or 'not set'}: prompts are {'English' if lang == 'en' else 'Chinese'} for imported goals",
    )
    if "GA_HUB" not in environ:
        yield Finding(
            "hub",
            State.WARNING,
            "--reflect also starts GenericAgent's hub, a local server; GA_HUB says otherwise",
        )
    yield Finding(
        "limits",
        State.WARNING,
        "its tools run as you, without a sandbox; `goalmode abort ID` ends a call, not what it has left running",
    )


def _version(root: Path) -> str:
    text = _read(root / "pyproject.toml")
    try:
        project = tomllib.loads(text).get("project", {})
    except tomllib.TOMLDecodeError:
        project = {}
    version = project.get("version") if isinstance(project, dict) else None
    return f"version {version}" if isinstance(version, str) else "of no stated version"


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX).decode("utf-8", "replace")
    except OSError:
        return ""
