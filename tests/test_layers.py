"""The rooms and who may use whom. Upper may import lower only; this is the picture that CONTRIBUTING.md draws."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

_VALUES = {"domain", "errors"}
_STORE = _VALUES | {"state", "migrations"}
_LEAVES = _STORE | {"context", "model", "tools"}
_LOOP = _LEAVES | {"settle", "loop"}
_OVER_GOALS = _LOOP | {"orchestrator"}
_CONFIGURED = {"configured", "credentials", "servers", "settings"}
_ENGINE = _OVER_GOALS | _CONFIGURED | {"inspection", "scheduler", "workflows"}

MAY_IMPORT: dict[str, set[str]] = {
    "domain": set(),
    "errors": {"domain"},
    "platforms": set(),
    "templates": set(),
    "servers": _VALUES,
    "settings": _VALUES | {"model", "servers"},
    "credentials": _VALUES | {"model", "servers", "settings"},
    "workflows": _VALUES,
    "state": _STORE,
    "migrations": _STORE,
    "context": _VALUES | {"templates"},
    "model": _VALUES | {"templates"},
    "tools": _VALUES,
    "settle": _LEAVES,
    "loop": _LOOP,
    "orchestrator": _OVER_GOALS,
    "inspection": _OVER_GOALS,
    "scheduler": _OVER_GOALS,
    # GenericAgent loads it: it puts itself together.
    "reflect": _OVER_GOALS | _CONFIGURED | {"platforms", "workflows", "wiring"},
    "testing": _VALUES | {"model", "state"},
    "audit": set(),
    "evals": _VALUES | {"context", "model"},
    "bench": _ENGINE | {"wiring"},
    "telemetry": _VALUES | {"loop"},
    "configured": _OVER_GOALS | _CONFIGURED,
    "wiring": _ENGINE - {"configured"} | {"templates"},
    "cli": _ENGINE | {"audit", "evals", "platforms", "wiring", "reflect", "goalmode", "telemetry", "web"},
    "web": _ENGINE | {"wiring", "goalmode"},
    "__main__": {"cli"},
    "goalmode": _ENGINE | {"wiring"},  # goalmode/__init__.py: the public names
}
"""A room of its own always sees itself. A room that is missing here has no place yet: decide on one."""

CONCRETE = (
    "model.http",
    "model.json_action",
    "model.mend",
    "model.retry",
    "model.scripted",
    "model.wire",
    "state.engine",
    "state.postgres",
    "state.sqlite",
)
"""Implementations of a seam. Everybody else sees the protocol (`model.port`) or the store's functions."""

DEMOS = {"cli.demo", "cli.demo_endings"}
PICKERS = {"wiring", "testing", *DEMOS}
"""The only modules that name concretes of another room."""

HOMES = {
    "aiohttp": {"bench", "model"},
    "alembic": {"state", "migrations"},
    "certifi": {"model"},
    "click": {"cli"},
    "cronsim": {"orchestrator"},
    "dbos": {"scheduler"},
    "httpx": {"bench"},
    "httpx2": {"tools"},
    "jinja2": {"context", "model", "web"},
    "markupsafe": {"web"},
    "matplotlib": {"evals"},
    "mcp": {"tools"},
    "mcp_types": {"tools"},
    "opentelemetry": {"telemetry"},
    "pydantic": {"tools"},
    "rich": {"cli"},
    "sqlalchemy": {"state", "migrations"},
    "sqlite3": {"bench", "state", "migrations"},
    "sqlmodel": {"state", "migrations"},
    "stamina": {"model"},
    "starlette": {"web"},
    "tiktoken": {"context"},
    "tree_sitter": {"audit"},
    "tree_sitter_javascript": {"audit"},
    "tree_sitter_typescript": {"audit"},
    "uvicorn": {"web"},
    "yarl": {"model"},
}
"""A library is one room's business: nobody else notices when it is exchanged."""

EXCEPTIONS = {("domain.clock", "anyio")}
"""The system clock sleeps in anyio's loop, and loads it when it first does."""

MAPPED = ("state", "templates", "migrations")
"""Top-level directories that are installed inside `goalmode`."""


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Every module with its name inside the package: `domain.exits`; the package itself is `goalmode`."""
    for top in ("goalmode", *MAPPED):
        for file in sorted((root / top).rglob("*.py")):
            parts = [
                *([] if top == "goalmode" else [top]),
                *file.relative_to(root / top).with_suffix("").parts,
            ]
            if parts[-1] == "__init__":
                parts.pop()
            yield ".".join(parts) or "goalmode", file


def imports(name: str, file: Path) -> Iterator[str]:
    """Absolute names of everything that the module imports, wherever in the file, also by `import_module`."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = [part for part in package if part != "goalmode"]
                above = ["goalmode", *base[: len(base) - level + 1]] if level else []
                origin = ".".join([*above, *([module] if module else [])])
                yield from (f"{origin}.{alias.name}" for alias in names)
            case ast.Call(func=func, args=[ast.Constant(value=str(target)), *_]):
                if ast.unparse(func).endswith("import_module"):
                    yield target


def violations(root: Path) -> list[str]:
    """One line for each import that the picture does not allow."""
    found = []
    rooms = {name.split(".")[0] for name, _ in modules(root)}
    for name, file in modules(root):
        room = name.split(".")[0]
        if room not in MAY_IMPORT:
            found.append(f"{name}: the room {room} has no place among the layers")
            continue
        found += [
            f"{name}: {why}" for target in imports(name, file) if (why := _trouble(name, target, rooms))
        ]
    return sorted(set(found))


def _trouble(name: str, target: str, rooms: set[str]) -> str | None:
    room, (top, *inner) = name.split(".")[0], target.split(".")
    if top in MAPPED:
        return f"imports {top}: say goalmode.{top}"
    if top != "goalmode":
        if room == "domain" and top not in sys.stdlib_module_names and (name, top) not in EXCEPTIONS:
            return f"imports {top}: domain knows the standard library only"
        return f"imports {top}: not its business" if room not in HOMES.get(top, {room}) else None
    theirs = inner[0] if inner and inner[0] in rooms else "goalmode"
    if theirs == room:
        return None
    if theirs not in MAY_IMPORT[room] and not (theirs == "testing" and name in DEMOS):
        return f"imports {target}: {room} is not above {theirs}"
    concrete = any(f"{'.'.join(inner)}.".startswith(f"{known}.") for known in CONCRETE)
    picks = any(f"{name}.".startswith(f"{picker}.") for picker in PICKERS)
    if concrete and not picks and not {room, theirs} <= {"state", "migrations"}:
        return f"imports {target}: only wiring knows concretes"
    return None


def test_every_import_keeps_the_layers() -> None:
    """No module imports a room above it or beside it, and only wiring knows concretes."""
    assert violations(ROOT) == []


def test_every_room_of_the_picture_is_known_or_to_come() -> None:
    """The walk finds the rooms: an empty list of violations is not an empty walk."""
    names = {name.split(".")[0] for name, _ in modules(ROOT)}

    assert {"domain", "errors", "state", "context", "model", "tools", "loop", "migrations"} <= names


@pytest.mark.parametrize(
    ("place", "line", "expected"),
    [
        ("goalmode/domain/a.py", "import aiohttp", "domain knows the standard library only"),
        ("goalmode/domain/a.py", "from goalmode.errors import X", "domain is not above errors"),
        ("goalmode/domain/a.py", "from ..errors import X", "domain is not above errors"),
        ("goalmode/domain/a.py", "from .. import errors", "domain is not above errors"),
        ("goalmode/context/a.py", "import goalmode.tools.plan", "context is not above tools"),
        ("goalmode/tools/a.py", "def f():\n    from goalmode import model", "tools is not above model"),
        ("goalmode/model/a.py", "from goalmode.state.store import Store", "model is not above state"),
        ("goalmode/loop/a.py", "from goalmode.orchestrator import wake", "loop is not above orchestrator"),
        ("goalmode/loop/a.py", "from goalmode.model.http import Http", "only wiring knows concretes"),
        ("goalmode/loop/a.py", "from goalmode.model import wire", "only wiring knows concretes"),
        ("goalmode/loop/a.py", "import_module('goalmode.wiring')", "loop is not above wiring"),
        ("goalmode/loop/a.py", "from goalmode import run_wakeup", "loop is not above goalmode"),
        ("goalmode/loop/a.py", "import sqlmodel", "not its business"),
        ("goalmode/cli/a.py", "from goalmode.testing import Stub", "cli is not above testing"),
        ("goalmode/cli/a.py", "from state import tables", "say goalmode.state"),
        ("state/a.py", "from goalmode.loop import wakeup", "state is not above loop"),
        ("goalmode/attic/a.py", "", "the room attic has no place among the layers"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, place: str, line: str, expected: str) -> None:
    """The checker sees each kind of forbidden import, however it is spelled."""
    _plant(tmp_path, place, line)

    assert expected in "\n".join(violations(tmp_path))


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("goalmode/domain/a.py", "from .exits import X\nimport enum"),
        ("goalmode/loop/a.py", "from goalmode.model.port import Model"),
        ("goalmode/model/a.py", "import aiohttp\nfrom goalmode.model.wire import openai_chat"),
        (
            "goalmode/wiring.py",
            "from goalmode.model.http import Http\nfrom goalmode.state.engine import make",
        ),
        ("goalmode/cli/demo.py", "from goalmode.testing import Stub"),
        ("migrations/env.py", "from goalmode.state.engine import make"),
    ],
)
def test_allowed_imports_are_no_violation(tmp_path: Path, place: str, line: str) -> None:
    """The checker lets pass what the picture allows."""
    _plant(tmp_path, place, line)

    assert violations(tmp_path) == []


def _plant(root: Path, place: str, line: str) -> None:
    rooms = [room for room in MAY_IMPORT if room not in (*MAPPED, "goalmode", "__main__")]
    for known in (*MAPPED, *(f"goalmode/{room}" for room in rooms)):
        (root / known).mkdir(parents=True)
        (root / known / "__init__.py").touch()
    file = root / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(line)


_WATCHED = """
import importlib, json, sys
writes = []
def watch(event, args):
    if event == "open" and (args[1] not in (None, "r", "rb", "rt") or (args[2] or 0) & 3):
        writes.append(str(args[0]))
    elif event in ("os.mkdir", "socket.connect", "socket.bind", "sqlite3.connect", "subprocess.Popen"):
        writes.append(f"{event} {args}")
sys.addaudithook(watch)
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps({"modules": sorted(sys.modules), "writes": writes}))
"""


def _import(*names: str) -> dict[str, list[str]]:
    """Import in a fresh process: the modules then loaded and what was written, opened or started."""
    command = [sys.executable, "-B", "-W", "error", "-c", _WATCHED, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert (done.stdout.count("\n"), done.stderr) == (1, ""), "importing printed something"
    result: dict[str, list[str]] = json.loads(done.stdout)
    return result


def test_importing_goalmode_loads_nothing_heavy() -> None:
    """`import goalmode` prints nothing, opens nothing and loads no library of the rooms."""
    seen = _import("goalmode")

    assert seen["writes"] == []
    assert set() == set(HOMES) & set(seen["modules"])


@pytest.mark.slow  # Part of `make check`.
def test_importing_any_module_prints_and_writes_nothing() -> None:
    """No module has an effect when it is imported; alembic's `env` and `__main__` are scripts, not modules."""
    names = [name for name, _ in modules(ROOT) if name not in ("goalmode", "__main__", "migrations.env")]

    assert _import(*(f"goalmode.{name}" for name in names))["writes"] == []
