"""The set of tools, and tools made of functions."""

from __future__ import annotations

import pytest

from goalmode.domain.calls import Effect
from goalmode.errors import BadInput
from goalmode.tools.builtin import builtin_tools
from goalmode.tools.registry import Registry, Tool, ToolContext, ToolOutput, tool

pytestmark = pytest.mark.anyio


@tool(effect="read")
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool
async def where(context: ToolContext, name: str) -> str:
    """Say where."""
    return f"{context.call_id}/{name}"


def test_a_function_becomes_a_tool() -> None:
    """Name, description and schema come from the function; the context is no argument of the model's."""
    assert (add.name, add.spec.description, add.effect) == ("add", "Add two numbers.", Effect.READ)
    assert (where.name, where.effect) == ("where", Effect.WRITE)
    assert where.spec.parameters["properties"] == {"name": {"type": "string"}}
    assert where.brief({"name": "here"}) == "here"


async def test_plain_and_async_functions_run(context: ToolContext) -> None:
    """A plain function runs in a thread, an async one in the loop, with the context where it asks for it."""
    assert await add.run(context, {"a": 2}) == ToolOutput("3")
    assert await where.run(context, {"name": "x"}) == ToolOutput("call_1/x")


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("text", ToolOutput("text")),
        (ToolOutput("kept", ok=False), ToolOutput("kept", ok=False)),
        (b"caf\xe9", ToolOutput("caf\ufffd", size=4)),
        ({"a": ["ä"]}, ToolOutput('{"a": ["ä"]}')),
        (None, ToolOutput("(no result)")),
    ],
    ids=str,
)
async def test_what_a_function_returns_becomes_text(
    returned: object, expected: ToolOutput, context: ToolContext
) -> None:
    """Text, output, bytes and JSON values are told as text."""

    @tool
    def give() -> object:
        return returned

    assert await give.run(context, {}) == expected


def test_a_name_that_providers_refuse_is_refused() -> None:
    """A function whose name no provider takes is no tool."""
    with pytest.raises(BadInput, match="tool name"):

        @tool
        def größe() -> str:
            return ""


def test_the_registry_keeps_order_and_filters_by_effect() -> None:
    """Specs come in the order of the tools, all or those with the effects asked for."""
    registry = Registry([where, add])

    assert registry.names == ("where", "add")
    assert [spec.name for spec in registry.specs()] == ["where", "add"]
    assert [spec.name for spec in registry.specs(frozenset({Effect.READ}))] == ["add"]
    assert registry.lookup("add") is add
    assert registry.lookup("nothing") is None


def test_only_and_with_make_new_registries() -> None:
    """`only` keeps the registry's order and names the valid tools on an unknown one; a name is taken once."""
    registry = builtin_tools()

    assert registry.only(["write_file", "shell"]).names == ("shell", "write_file")
    assert registry.only([]).names == ()
    assert registry.with_(add).names[-1] == "add"
    with pytest.raises(BadInput, match=r"'sh' is not valid: the tools are: shell, read_file"):
        registry.only(["sh"])
    with pytest.raises(BadInput, match="another tool"):
        registry.with_(_named(add, "shell"))


def test_the_built_in_tools_are_these() -> None:
    """Names that GenericAgent's users know are kept."""
    assert builtin_tools().names == (
        "shell",
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "update_working_checkpoint",
        "verify",
        "complete",
        "wait",
        "remember",
        "recall",
        "start_long_term_update",
    )


def _named(made: Tool, name: str) -> Tool:
    from dataclasses import replace

    return replace(made, spec=replace(made.spec, name=name))
