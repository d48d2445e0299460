"""What pyproject.toml says is what the tree holds."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pytest

import goalmode
from goalmode.workflows.load import SHIPPED

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))

MAPPED = {"goalmode.state": "state", "goalmode.templates": "templates", "goalmode.migrations": "migrations"}
DATA = {"tzdata"}
"""Read by the standard library's zoneinfo where the system has no time zones of its own."""

INDIRECT = {"pydantic", "markupsafe"}
"""Imported without being declared: part of sqlmodel's and of Jinja's own interfaces."""

MODULES = {"opentelemetry_api": "opentelemetry"}
"""What is imported of a library that is called otherwise."""

FOR_DEVELOPMENT = {"dev", "browser"}
"""Extras that bring nothing to users."""


def _packages() -> set[str]:
    found = set()
    for name, folder in {"goalmode": "goalmode", **MAPPED}.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join([name, *init.parent.relative_to(ROOT / folder).parts]))
    return found


def _declared() -> set[str]:
    """Top-level modules of the runtime dependencies."""
    return {
        re.split(r"[<>=!~\[; ]", line)[0].replace("-", "_") for line in PROJECT["project"]["dependencies"]
    }


def _in_extras() -> set[str]:
    """Top-level modules of what users may add; in which room each is used is held by `test_layers.py`."""
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [line for name, lines in extras.items() if name not in FOR_DEVELOPMENT for line in lines]
    names = {re.split(r"[<>=!~\[; ]", line)[0].replace("-", "_") for line in lines}
    return {MODULES.get(name, name) for name in names}


def _imported() -> dict[str, str]:
    """Every library that the packages import, with a file that does."""
    found = {}
    for folder in ("goalmode", *MAPPED.values()):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                match node:
                    case ast.Import(names=names):
                        targets = [alias.name for alias in names]
                    case ast.ImportFrom(module=str(module), level=0):
                        targets = [module]
                    case _:
                        continue
                for target in targets:
                    top = target.split(".")[0]
                    if top not in sys.stdlib_module_names and top != "goalmode":
                        found[top] = str(file.relative_to(ROOT))
    return found


def test_the_list_of_packages_is_the_tree() -> None:
    """A package that is missing in pyproject.toml would be missing in the wheel."""
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == _packages()


def test_every_directory_of_modules_is_a_package() -> None:
    """A directory without `__init__.py` would be left out of the wheel without a word."""
    folders = {file.parent for top in ("goalmode", *MAPPED.values()) for file in (ROOT / top).rglob("*.py")}

    assert [str(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_top_level_package_is_mapped_into_goalmode() -> None:
    """The wheel installs `goalmode` only; the other top-level packages live inside it."""
    assert PROJECT["tool"]["setuptools"]["package-dir"] == {"goalmode": "goalmode", **MAPPED}


def test_documents_are_not_installed() -> None:
    """The wheel holds what runs: nothing is discovered, and no data of a package lies outside of it."""
    setuptools = PROJECT["tool"]["setuptools"]
    named = {*setuptools["packages"], *setuptools["package-data"]}

    assert set(setuptools) == {"packages", "package-dir", "package-data"}
    assert not [name for name in named if "docs" in name.split(".")]
    assert not [glob for globs in setuptools["package-data"].values() for glob in globs if ".." in glob]


def test_data_files_are_found_where_the_code_looks() -> None:
    """The mark of a typed package, the vocabulary and the templates are package data."""
    assert resources.files("goalmode").joinpath("py.typed").is_file()
    assert resources.files("goalmode.context").joinpath("o200k_base.tiktoken.gz").is_file()
    for lang in ("en", "zh"):
        assert resources.files("goalmode.templates").joinpath(lang, "system.j2").is_file()
        assert resources.files("goalmode.templates").joinpath(lang, "movements", "pursue.j2").is_file()
    for name in ("templates/base.html", "static/page.css", "static/uPlot.LICENSE", "words/zh.toml"):
        assert resources.files("goalmode.web").joinpath(name).is_file()
    for name in SHIPPED:
        assert resources.files("goalmode.workflows").joinpath(f"{name}.toml").is_file()


def test_both_languages_have_the_same_templates() -> None:
    """A prompt that exists in one language only would fail for the users of the other."""
    names = {
        lang: {
            str(file.relative_to(ROOT / "templates" / lang))
            for file in (ROOT / "templates" / lang).rglob("*")
        }
        for lang in ("en", "zh")
    }

    assert names["en"] == names["zh"]


def test_there_is_one_version() -> None:
    """The version in pyproject.toml is the installed one, and the package says no other."""
    assert PROJECT["project"]["version"] == metadata.version("goalmode")
    assert metadata.version("goalmode") == getattr(goalmode, "__version__", metadata.version("goalmode"))


@pytest.mark.slow  # Part of `make check`.
def test_every_dependency_is_used() -> None:
    """Nobody installs a library that no module imports."""
    assert _declared() - set(_imported()) == DATA


@pytest.mark.slow  # Part of `make check`.
def test_every_import_is_declared() -> None:
    """A library that a module imports is a dependency, not an accident of somebody's environment."""
    known = _declared() | _in_extras() | INDIRECT
    undeclared = {top: file for top, file in _imported().items() if top not in known}

    assert undeclared == {}


def test_extras_do_not_repeat_the_core() -> None:
    """A library is declared once."""
    extras = PROJECT["project"]["optional-dependencies"]
    names = {re.split(r"[<>=!~\[; ]", line)[0] for lines in extras.values() for line in lines}

    assert {name.replace("-", "_") for name in names} & _declared() == set()
