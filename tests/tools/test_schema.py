"""Schemas of signatures, and what does not match one."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional

import pytest

from goalmode.errors import BadInput
from goalmode.tools.schema import schema_of, validate


def everything(
    text: str,
    count: int,
    share: float,
    flag: bool,
    names: list[str],
    table: dict[str, int],
    mode: Literal["fast", "slow"],
    anything: Any,
    nothing: Optional[str] = None,  # noqa: UP045 - both spellings are supported
    either: str | list[str] = "x",
    told: Annotated[int, "A number."] = 3,
) -> None: ...


RIGHT: dict[str, object] = {
    "text": "t",
    "count": 1,
    "share": 0.5,
    "flag": True,
    "names": ["a"],
    "table": {"a": 1},
    "mode": "fast",
    "anything": [None],
}


def test_a_signature_becomes_a_closed_object_schema() -> None:
    """Every supported annotation has its JSON schema, defaults make an argument optional, nothing else may be given."""
    assert schema_of(everything) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "table": {"type": "object", "additionalProperties": {"type": "integer"}},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "anything": {},
            "nothing": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "either": {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "default": "x",
            },
            "told": {"type": "integer", "description": "A number.", "default": 3},
        },
        "required": ["text", "count", "share", "flag", "names", "table", "mode", "anything"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    "change",
    [{}, {"nothing": None}, {"nothing": "x"}, {"share": 2}, {"either": ["a"]}, {"names": []}, {"table": {}}],
    ids=str,
)
def test_matching_arguments_have_no_problem(change: dict[str, object]) -> None:
    """Arguments of the annotated types pass, an integer for a float too."""
    assert validate(schema_of(everything), {**RIGHT, **change}) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"text": 7}, "text: 7 is not valid, must be a string"),
        ({"count": "7"}, 'count: "7" is not valid, must be an integer'),
        ({"count": True}, "count: true is not valid, must be an integer"),
        ({"count": 7.0}, "count: 7.0 is not valid, must be an integer"),
        ({"share": "0.5"}, 'share: "0.5" is not valid, must be a number'),
        ({"flag": 1}, "flag: 1 is not valid, must be true or false"),
        ({"flag": "true"}, 'flag: "true" is not valid, must be true or false'),
        ({"names": "a"}, 'names: "a" is not valid, must be a list, each item a string'),
        ({"names": ["a", 1]}, "names[1]: 1 is not valid, must be a string"),
        ({"table": {"a": "b"}}, 'table.a: "b" is not valid, must be an integer'),
        ({"mode": "Fast"}, 'mode: "Fast" is not valid, must be one of "fast", "slow"'),
        ({"nothing": 1}, "nothing: 1 is not valid, must be a string or null"),
        ({"either": [1]}, "either[0]: 1 is not valid, must be a string"),
        ({"text": None}, "text: null is not valid, must be a string"),
    ],
    ids=str,
)
def test_a_wrong_value_is_named_with_what_would_be_right(change: dict[str, object], problem: str) -> None:
    """Nothing is coerced; the one problem names argument, value and expectation."""
    assert validate(schema_of(everything), {**RIGHT, **change}) == [problem]


def test_missing_and_unknown_arguments_are_named() -> None:
    """A missing argument tells its type, an unknown one the known names."""

    def simple(path: str, depth: int = 2) -> None: ...

    assert validate(schema_of(simple), {"pth": "x"}) == [
        "path: missing, must be a string",
        "pth: unknown, the arguments are: path, depth",
    ]


def test_a_huge_value_is_previewed_in_bounds() -> None:
    """A problem never echoes a huge value."""
    problems = validate(schema_of(everything), {**RIGHT, "count": "x" * 2_000_000, "y" * 1_000_000: 1})

    assert [len(problem) < 400 for problem in problems] == [True, True]


class Odd: ...


def test_what_cannot_be_told_to_a_model_is_refused_with_the_argument() -> None:
    """Missing and foreign annotations and argument lists are refused when the tool is made."""

    def untyped(a) -> None: ...  # type: ignore[no-untyped-def]

    def foreign(a: Odd) -> None: ...

    def keyed(a: dict[int, str]) -> None: ...

    def many(*a: str) -> None: ...

    for function in (untyped, foreign, keyed, many):
        with pytest.raises(BadInput, match="argument a"):
            schema_of(function)
