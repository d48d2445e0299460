"""Prompts are files: templates with strict variables, a closed set of values each, and no code of the user's text.

What comes from users, models and tools is only ever a value, cleaned by `goalmode.context.escape`; no template is
built from it, and nothing that was filled in is looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType, TracebackType

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from goalmode.context.escape import item
from goalmode.errors import TemplateError

_PACKAGE = "goalmode.templates"
_NONE: tuple[str, ...] = ()

PROMPTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "recovery": {"attempt": 0, "of": 0, "pending": _NONE, "missing": _NONE},
        "nudge": {"pending": _NONE, "missing": _NONE},
        "truncated": {"calls": 0},
        "malformed": {"detail": ""},
        "rejected": {"missing": tuple},
        "not_blocked": {"obstacle": str, "met": int, "needed": int, "waits": _NONE},
        "raise_bar": {"checked": True},
        "repeated": {"calls": tuple, "count": int, "ends_at": int},
        "wrap_up": {"kind": str, "limit": object, "used": object},
        "handoff": {"max_turns": int},
        "checkpoint_request": {},
        "settlement": {
            "memories": _NONE,
            "left_out": 0,
            "closing": False,
            "attempt": 1,
            "of": 1,
            "nothing": False,
        },
        "note": {"entries": tuple, "left_out": 0},
        "servers_missing": {"entries": tuple},
    }
)
"""The prompts that a loop adds to a conversation, and their values: a type where one must be given, else a default.

- recovery, nudge: `pending` are labels of items that await verification, `missing` paths that are not there yet;
  `attempt` of `of` recoveries.
- truncated: `calls` is the number of calls in the cut reply; none of them was run.
- malformed: `detail` says what was wrong.
- rejected: `missing` says what the claim lacks, one entry each.
- not_blocked: `obstacle` was met in `met` wakeups, `needed` earn the status; or `waits` may still remove it.
- raise_bar: a goal without an end of its own goes on to a higher standard: a claim stood (`checked`), or a
  verification found nothing to mend.
- repeated: `calls` were made `count` times in a row with the same results; `ends_at` times end the movement.
- wrap_up: `kind`, `limit` and `used` of the `LimitHit` that allows no further call.
- handoff: `max_turns` of the wakeup are used.
- checkpoint_request: the conversation will soon be rendered anew.
- settlement: asks what is worth remembering. `memories` are (label, kind, text), `left_out` the number of those not
  shown; `closing`: the ending stands, and only memories are wanted; `attempt` of `of`; `nothing`: a call says that
  there is nothing.
- note: `entries` were said while the wakeup runs, oldest first: (kind, text, about), see `goalmode.domain.notes.News`;
  `left_out` older ones are not shown.
- servers_missing: `entries` say what is wrong with the MCP servers that this wakeup has to do without.
"""


class Prompts:
    """The templates of the package, and a user's own in their place.

    Args:
        overrides: a directory shaped like the package's (`en/goal.j2`); a file in it replaces the package's. It is the
            user's own configuration, never a directory of a workspace.
    """

    def __init__(self, overrides: Path | None = None) -> None:
        package = jinja2.PackageLoader(_PACKAGE, ".")
        loaders = [package] if overrides is None else [jinja2.FileSystemLoader(overrides), package]
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.ChoiceLoader(loaders),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.clear()
        self.remembered = lru_cache(maxsize=256)(self.frame)
        """`frame` for short values that are often the same: of most sections, from one context to the next."""

    def prompt(self, name: str, lang: str, **values: object) -> str:
        """One of `PROMPTS`, with every text among `values` cleaned.

        Raises:
            TemplateError: the template is missing or broken, or uses a variable that it does not get.
            KeyError, TypeError: no such prompt, or other values than it has.
        """
        expected = PROMPTS[name]
        unknown = values.keys() - expected.keys()
        lacking = {key for key, kind in expected.items() if isinstance(kind, type)} - values.keys()
        if unknown or lacking:
            raise TypeError(f"prompt {name}: unknown values {sorted(unknown)}, lacking {sorted(lacking)}")
        given = {key: values.get(key, default) for key, default in expected.items()}
        return self.frame(name, lang, **{key: _clean(value) for key, value in given.items()})

    def frame(self, name: str, lang: str, **values: object) -> str:
        """The template `name` with values that are clean already."""
        try:
            return self._environment.get_template(f"{lang}/{name}.j2").render(values).strip()
        except _FAILURES as error:
            raise _told(error, f"{lang}/{name}.j2") from error

    def movements(self, lang: str) -> tuple[str, ...]:
        """The names of the movements' templates in one language."""
        head, tail = f"{lang}/movements/", ".j2"
        found = self._environment.list_templates(extensions=["j2"])
        return tuple(name[len(head) : -len(tail)] for name in found if name.startswith(head))

    def words(self, lang: str) -> Words:
        """The wording of single items, from `items.j2`."""
        return Words(self._environment, lang)


class Words:
    """The macros of `items.j2`: how one item of a section reads in one language. Values must be clean already."""

    def __init__(self, environment: jinja2.Environment, lang: str) -> None:
        self._file = f"{lang}/items.j2"
        try:
            self._macros = environment.get_template(self._file).module
        except _FAILURES as error:
            raise _told(error, self._file) from error

    def __call__(self, macro: str, **values: object) -> str:
        """Raises TemplateError: no such macro, or one that fails."""
        found = getattr(self._macros, macro, None)
        if found is None:
            raise TemplateError(f"{self._file}: there is no macro {macro!r}")
        try:
            return str(found(**values)).strip()
        except _FAILURES as error:
            raise _told(error, self._file) from error


@cache
def package_prompts() -> Prompts:
    """The package's own templates."""
    return Prompts()


def render_prompt(name: str, lang: str, **values: object) -> str:
    """`Prompts.prompt` of the package's own templates."""
    return package_prompts().prompt(name, lang, **values)


_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
)
"""What a template can fail with: its own errors, and those of the expressions in it."""


def _clean(value: object) -> object:
    if isinstance(value, str):
        return item(value)
    return tuple(map(_clean, value)) if isinstance(value, tuple) else value


def _told(error: Exception, file: str) -> TemplateError:
    match error:
        case jinja2.TemplateSyntaxError():
            return TemplateError(f"{error.filename or file}, line {error.lineno}: {error.message}")
        case jinja2.TemplateNotFound():
            return TemplateError(f"there is no template {error.message}")
        case _:
            where = _line(error.__traceback__) or file
            return TemplateError(f"{where}: {error}")


def _line(traceback: TracebackType | None) -> str:
    """The innermost line of a template in a traceback, where Jinja shows templates as if they were code."""
    where = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file.endswith(".j2"):
            where = f"{file}, line {traceback.tb_lineno}"
        traceback = traceback.tb_next
    return where
