"""Rendered prompts, kept as files. `GOALMODE_UPDATE_GOLDEN=1 pytest tests/context` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

LANGS = ("en", "zh")
_DIRECTORY = Path(__file__).parents[1] / "golden"
_UPDATE = os.environ.get("GOALMODE_UPDATE_GOLDEN") == "1"  # Before a test's environment is emptied.


def check(name: str, text: str) -> None:
    """Assert that `text` is what the golden file `name` holds."""
    path = _DIRECTORY / name
    rendered = f"{text.rstrip(chr(10))}\n"
    if _UPDATE:
        path.write_text(rendered, encoding="utf-8")
    assert path.read_text("utf-8") == rendered, f"{name} reads differently"
