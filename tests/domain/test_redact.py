"""No known secret survives, in none of the forms in which it may turn up."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain import redact
from goalmode.domain.redact import MARK, Redactor, Redactors, learned, url_secrets

CANARY = 'canary/+"7\\f3 é&secret'


@pytest.mark.parametrize(
    "form",
    [
        CANARY,
        quote(CANARY),
        quote(CANARY, safe=""),
        quote_plus(CANARY),
        json.dumps(CANARY)[1:-1],
        base64.b64encode(CANARY.encode()).decode(),
        base64.b64encode(CANARY.encode()).decode().rstrip("="),
    ],
    ids=["plain", "path", "url", "form", "json", "base64", "base64-unpadded"],
)
def test_a_known_secret_is_struck_out_in_every_form(form: str) -> None:
    """B115: plain, URL, JSON and base64 text of a secret are all struck out, and counted."""
    assert (f"a{MARK}b {MARK}", 2) == Redactor([CANARY]).count(f"a{form}b {form}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def", f"Authorization: Bearer {MARK}"),
        ('{"authorization": "Basic dXNlcjpw"}', f'{{"authorization": "Basic {MARK}"}}'),
        ("bearer abcdefghijkl", f"bearer {MARK}"),
        ("x-api-key: 12345", f"x-api-key: {MARK}"),
        ("GET /v1?api_key=s3cret&n=1", f"GET /v1?api_key={MARK}&n=1"),
        ("https://user:pass@host/v1", f"https://{MARK}@host/v1"),
        ("key sk-proj_0123456789abcdef", f"key {MARK}"),
    ],
)
def test_patterns_of_keys_are_struck_out(text: str, expected: str) -> None:
    """Keys nobody told us of are recognised by what stands before them; the rest of the line stays."""
    assert expected == Redactor()(text)


@pytest.mark.parametrize(
    "text",
    ["a bearer of news", "https://host/v1?page=2", "the task-based approach", "user@example.org", "tokens=5"],
)
def test_ordinary_text_stays(text: str) -> None:
    """What only looks like a key at a glance is left alone."""
    assert (text, 0) == Redactor().count(text)


def test_short_secrets_are_ignored() -> None:
    """Fewer than six characters would strike out ordinary words."""
    assert Redactor(["the"])("the door") == "the door"


def test_a_users_own_pattern_is_struck_out() -> None:
    """Further patterns match a whole secret each."""
    assert f"id {MARK} x" == Redactor(patterns=[r"EMP-\d+"])("id EMP-4711 x")


def test_what_is_learned_is_added_and_never_forgotten() -> None:
    """Several say what they know, one after the other; what is said again takes no more time."""
    known = Redactors(Redactor(["first-secret"]))
    for _ in range(100):
        known.add(Redactor(["second-secret"], ["EMP-[0-9]+"]))
        known.add(Redactor())
        known.add(known)

    assert known("first-secret second-secret EMP-1") == f"{MARK} {MARK} {MARK}"
    assert len(known._each) == 3


def test_a_redactor_learns_from_another() -> None:
    """One that can learn stays the same; one that cannot is known to the one that stands in its place."""
    plain = Redactor(["first-secret"])
    known = learned(plain, Redactor(["second-secret"]))

    assert learned(known, Redactor(["third-secret"])) is known
    assert known("first-secret second-secret third-secret") == f"{MARK} {MARK} {MARK}"
    assert learned(known, known) is known


_secrets = st.lists(
    st.text(st.sampled_from('abcXYZ019/+=&%"\\ü-_ '), min_size=6, max_size=12), min_size=1, max_size=3
)


@given(_secrets, st.data())
def test_redaction_leaves_no_known_secret(secrets: list[str], data: st.DataObject) -> None:
    """Whatever stands around and between them, no form of any known secret is left."""
    forms = [form for s in secrets for form in (s, quote(s, safe=""), json.dumps(s)[1:-1])]
    parts = data.draw(st.lists(st.sampled_from(forms) | st.text(max_size=5), max_size=8))

    left = Redactor(secrets)("".join(parts))

    assert [s for s in secrets if s in left] == []


@given(st.text())
def test_redacting_twice_changes_nothing(text: str) -> None:
    """The mark is not itself taken for a secret."""
    redact = Redactor([CANARY])

    assert redact(text) == redact(redact(text))


_OTHER_CASES = {"k": "K", "K": "K", "i": "ı", "I": "İ", "s": "ſ", "S": "ſ"}
"""Letters that a pattern which ignores case takes for others."""


@given(st.data())
def test_hints_lose_no_match_of_a_pattern(data: st.DataObject) -> None:
    """A pattern is left out only where it finds nothing: what is struck out is what all patterns strike out."""
    matching = [st.from_regex(pattern, fullmatch=True) for _, pattern in redact._PATTERNS]
    parts = data.draw(st.lists(st.one_of(*matching, st.text(max_size=4), st.just("@")), max_size=3))
    text = "".join(parts)
    odd = data.draw(st.sets(st.integers(0, max(0, len(text) - 1)), max_size=8))
    text = "".join(_OTHER_CASES.get(c, c) if n in odd else c for n, c in enumerate(text))

    expected, total = text, 0
    for _, pattern in redact._PATTERNS:
        expected, found = pattern.subn(lambda m: m.group(1) + MARK, expected)
        total += found

    assert Redactor().count(text) == (expected, total)


@pytest.mark.parametrize("before", range(65_530, 65_540))
def test_a_key_is_found_wherever_it_stands_in_a_long_text(before: int) -> None:
    """Hints are looked for piece by piece; none is lost between two pieces."""
    text = "." * before + "sk-" + "a" * 20

    assert Redactor()(text) == "." * before + MARK


@pytest.mark.parametrize(
    ("url", "found", "every"),
    [
        ("https://h/v1?api-version=preview&token=abc", {"abc"}, {"preview", "abc"}),
        ("https://user:pa%20ss@h/v1", {"pa%20ss", "pa ss"}, {"pa%20ss", "pa ss"}),
        ("https://user@h/v1?secret", {"user", "secret"}, {"user", "secret"}),
        (f"https://h/v1?{'x' * 20}=", {"x" * 20}, {"x" * 20}),
        (f"https://h/v1?{'x' * 19}=", set(), {"x" * 19}),
        ("https://h/v1?token=&page=", set(), {"token", "page"}),
        ("https://h/v1", set(), set()),
    ],
)
def test_what_in_a_url_lets_in(url: str, found: set[str], every: set[str]) -> None:
    """Passwords and keys by their name or length, and on demand whatever a query holds."""
    assert set(url_secrets(url)) == found
    assert set(url_secrets(url, every=True)) == every
