"""Options that several commands share, and the texts a user gives."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from goalmode.cli import secrets
from goalmode.errors import BadInput

if TYPE_CHECKING:
    _TextType = click.ParamType[str]
else:  # Generic for type checkers only: older releases of click cannot be subscripted.
    _TextType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Common:
    """What every command about goals can be told.

    Attributes:
        store: where the goals are; None for `$GOALMODE_STORE`, or the user's own.
        config: the configuration file; None for `$GOALMODE_CONFIG`, or the user's own.
        json: print JSON. quiet: print nothing but the result.
    """

    store: str | None
    config: Path | None
    json: bool
    quiet: bool


class Utf8(_TextType):
    """A text that is UTF-8. What is not is refused, before anything is stored."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            label = (param.human_readable_name if param else "text").replace("_", "-").lower()
            raise not_utf8(label, error.start) from None
        return text


UTF8 = Utf8()


def not_utf8(field: str, position: int) -> BadInput:
    return BadInput(field, f"byte at position {position}", "UTF-8 text")


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def apply(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def common(command: F) -> F:
    """Add `--store`, `--config`, `--json` and `--quiet`, given to the command as `common`."""

    @click.option(
        "--store",
        metavar="URL",
        type=UTF8,
        help="Where the goals are stored: a file, or postgresql+psycopg://USER@HOST/DATABASE.",
    )
    @click.option(
        "--config", metavar="FILE", type=click.Path(path_type=Path), help="The goalmode.toml to use."
    )
    @click.option("--json", "json", is_flag=True, help="Print JSON.")
    @click.option("--quiet", "-q", is_flag=True, help="Print nothing but the result.")
    @functools.wraps(command)
    def with_common(
        *args: Any, store: str | None, config: Path | None, json: bool, quiet: bool, **rest: Any
    ) -> Any:
        secrets.learn(config, store)
        return command(*args, common=Common(store, config, json, quiet), **rest)

    return with_common  # type: ignore[return-value]


def given_text(text: str, field: str) -> str:
    """A text as a user gives one: itself, `-` for standard input, or `@FILE`.

    Raises:
        BadInput: the file cannot be read, or what it holds is not UTF-8.
    """
    if text == "-":
        return _decoded(sys.stdin.buffer.read(), field)
    if not text.startswith("@"):
        return text
    try:
        return _decoded(Path(text[1:]).read_bytes(), field)
    except OSError as error:
        raise BadInput(field, text, f"a file that can be read ({error.strerror})") from None


def _decoded(data: bytes, field: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(field, error.start) from None


model_options = together(
    click.option("--model", metavar="M", type=UTF8,
                 help="openai:NAME, openai-responses:NAME, anthropic:NAME, or a profile of goalmode.toml."),
    click.option("--base-url", metavar="URL", type=UTF8, help="The model's server; overrides the profile's."),
    click.option("--api-key-env", metavar="NAME", type=UTF8,
                 help="The environment variable that holds the key. The key itself is never stored."),
)  # fmt: skip


def refuse_credentials(base_url: str) -> None:
    """A goal's row is no place for a password, and an error message neither."""
    if any(mark in base_url for mark in "@?#"):
        expected = (
            "an address without user name, password and query; "
            "put one that has them into a profile of goalmode.toml, and name that with --model"
        )
        raise BadInput("base-url", "(not shown)", expected)
