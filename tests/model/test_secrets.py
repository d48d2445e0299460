"""Keys are nowhere in an error, wherever the user put them and whatever the provider echoes."""

from __future__ import annotations

import base64
import traceback
from collections.abc import Callable

import pytest

from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.model.wire.openai_chat import OpenAIChat
from goalmode.testing.steps import Step, cut, echo, error_chunk, status, text

from .conftest import Asked

KEY = "canary-key-1234567890"
PASSWORD = "canary-password"
QUERY = "canary-query"


def _with_credentials(base: str) -> str:
    return base.replace("http://", f"http://me:{PASSWORD}@") + f"?api_key={QUERY}"


def _everything(error: ModelError) -> str:
    facts = [str(getattr(error, name)) for name in vars(error)]
    return "".join([*facts, str(error), repr(error), *traceback.format_exception(error)])


@pytest.mark.parametrize("url", [lambda base: base, _with_credentials], ids=["key", "url"])
@pytest.mark.parametrize(
    "step",
    [
        echo(422),
        status(500, f"Authorization: Bearer {KEY} {KEY} {base64.b64encode(KEY.encode()).decode()}"),
        status(401, {"error": {"message": f"bad key {KEY}", "type": KEY, "code": PASSWORD}}),
        error_chunk({"message": f"{KEY} {PASSWORD} {QUERY}", "code": KEY}, "Half"),
        status(200, f"<html>{KEY}", {"content-type": f"text/{KEY}"}),
        cut(text("x"), 0),
    ],
    ids=["echo", "text", "fields", "chunk", "page", "cut"],
)
def test_no_key_is_in_an_error(ask: Callable[..., Asked], step: Step, url: Callable[[str], str]) -> None:
    """Message, facts, representation and traceback are free of keys, and still name host and status (B117)."""
    asked = ask([step], key=KEY, url=url)

    secrets = [KEY] if "?" not in asked.stub.requests[0].path else [KEY, PASSWORD, QUERY]
    assert [secret for secret in secrets if secret in _everything(asked.error)] == []
    assert "127.0.0.1" in asked.error.message
    assert asked.error.status is not None
    assert "canary" in str(asked.stub.requests[0]) or asked.stub.requests[0].headers["authorization"]


def test_a_long_echo_is_cut_to_one_line(ask: Callable[..., Asked]) -> None:
    """An error's text is bounded and cannot move a cursor or start a line."""
    message = ask([status(500, "\x1b[2J\nforged\n" + "x" * 100_000)]).error.message

    assert len(message) <= 500
    assert message.isprintable()


def test_a_key_at_the_cut_is_struck_out_before_it() -> None:
    """Redaction comes first, so that no half of a key is left at the end."""
    http = OpenAIChat(ModelProfile("m", "openai", "m", "http://127.0.0.1/v1"), KEY)._http

    for offset in range(440, 520):
        assert "canary" not in http.error(ErrorKind.SERVER, "x" * offset + KEY).message


@pytest.mark.parametrize("key", [f"{KEY}\r\nx-evil: 1", f"{KEY}é", f"{KEY}\x00"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    """Such a key would end up in the HTTP library's own error text."""
    with pytest.raises(ModelError) as caught:
        OpenAIChat(ModelProfile("m", "openai", "m", "http://127.0.0.1/v1"), key)

    assert caught.value.kind is ErrorKind.AUTH
    assert "canary" not in _everything(caught.value)


@pytest.mark.parametrize(
    "url", ["", "canary", "ftp://canary", "http://", "http://canary:99999", "file:///canary"]
)
def test_a_base_url_that_is_none_is_refused_unseen(url: str) -> None:
    """What is wrong with it is said without repeating it."""
    with pytest.raises(ModelError, match="http or https") as caught:
        OpenAIChat(ModelProfile("m", "openai", "m", url), None)

    assert "canary" not in _everything(caught.value)
