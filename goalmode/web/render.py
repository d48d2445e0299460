"""Pages out of templates. Whatever a page shows goes through one place here: secrets out, control characters visible,
and escaped for HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from goalmode.domain.cost import dollars
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line, safe
from goalmode.web import figures


class Templates:
    """The templates of the package. Text of users, models and tools is only ever a value.

    Args:
        redact: strikes out what no page may show.
    """

    def __init__(self, redact: Redactor) -> None:
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.PackageLoader("goalmode.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown_with(redact),
        )
        self._environment.filters |= {
            "count": figures.count,
            "dollars": dollars,
            "heading": figures.heading,
            "line": one_line,
            "local": figures.local,
            "span": figures.span,
        }

    def __call__(self, name: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(name).render(values)


def _shown_with(redact: Redactor) -> Callable[[object], object]:
    def shown(value: object) -> object:
        if isinstance(value, Markup):  # A macro's output: all that is in it has been here already.
            return value
        if value is None:
            return ""
        return safe(redact(value)) if isinstance(value, str) else value

    return shown
