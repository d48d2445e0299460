"""The words of the pages: one table a language, with the same keys, and which of them a request asks for."""

from __future__ import annotations

import string
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

LANGUAGES = {"en": "English", "zh": "中文"}
"""By the names of their tables, each in its own words."""

DEFAULT = "en"


class _Format(string.Formatter):
    def format_field(self, value: object, spec: str) -> str:
        one, bar, many = spec.partition("|")
        if not bar:
            return str(super().format_field(value, spec))
        return one if str(value) == "1" else many


_FORMAT = _Format()


class Words:
    """The words of one language. A key that is not there is a mistake of ours, never an empty text."""

    def __init__(self, lang: str) -> None:
        self.lang, self.table = lang, table(lang)

    def __call__(self, key: str, **values: object) -> str:
        """The words under `key`, filled with values; what is filled in is not looked at again.

        `{n:turn|turns}` is the first of the two words if `n` is 1, else the second one.

        Raises:
            KeyError: no such words, or a value is missing.
        """
        found = self.table[key]
        return _FORMAT.vformat(found, (), values) if values else found

    def of(self, group: str, word: object) -> str:
        """The words for a stored word; itself, where this code does not know it."""
        return self.table.get(f"{group}.{word}", str(word))


@cache
def table(lang: str) -> Mapping[str, str]:
    """All words of a language, under keys such as `list.title`."""
    text = resources.files(__package__).joinpath("words", f"{lang}.toml").read_text("utf-8")
    return dict(_flat(tomllib.loads(text)))


def chosen(wanted: str | None, kept: str | None, accepted: str) -> str:
    """A page's language: that of its address, else the one chosen earlier, else the browser's (Accept-Language)."""
    for lang in (wanted, kept, *_preferred(accepted)):
        if lang in LANGUAGES:
            return lang
    return DEFAULT


def _preferred(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first, without their regions."""
    found = []
    for part in header.split(","):
        tag, _, parameters = part.partition(";")
        try:
            quality = float(parameters.partition("q=")[2] or 1)
        except ValueError:
            quality = 0.0
        if quality > 0:
            found.append((-quality, tag.strip().lower().partition("-")[0]))
    return [lang for _, lang in sorted(found, key=lambda one: one[0])]


def _flat(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _flat(item, f"{before}{key}.")
        else:
            yield f"{before}{key}", str(item)
