"""MCP servers seen from a goal: what is on offer of them, and what comes of calls, in memory and without a process."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.server import Server
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequestURLParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

from goalmode.domain import outside
from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.exits import ExitReason
from goalmode.errors import Fenced
from goalmode.model.lint import NAME, lint
from goalmode.tools import mcp as offering
from goalmode.tools.mcp import Offer, Outside
from goalmode.tools.mcp_offer import MAX_DESCRIPTION, MAX_TOGETHER, MAX_TOOLS, schema_for_wire, wire_name
from tests.mcp_servers import ANY, in_memory, said, server, tool
from tests.tools.bench import Bench

pytestmark = pytest.mark.anyio

OK, FAILED = CallOutcome.SUCCESS, CallOutcome.FAILED
PIXEL = base64.b64encode(b"\x89PNG not really").decode()


class Desk:
    """Opens servers in memory and calls their tools as a reply would."""

    def __init__(self, patch: pytest.MonkeyPatch, bench: Bench) -> None:
        self._patch, self._bench = patch, bench
        self.room = 1_000_000
        self.answers: dict[str, str] = {}

    def servers(self, made: Mapping[str, Server], **fields: Any) -> Outside:
        known = tuple(replace(one, **fields) for one in in_memory(self._patch, made))
        workspace = self._bench.context.workspace
        return Outside(known, workspace, {}, lambda spec: len(spec.description), self.room, self.answers)

    async def offer(self, made: Mapping[str, Server], **fields: Any) -> Offer:
        async with self.servers(made, **fields).running(self._bench.context.gate) as offer:
            return offer

    async def call(self, made: Server, name: str = "do", /, **arguments: Any) -> Any:
        """One call of one tool of a server called `s`: its record."""
        async with self.servers({"s": made}).running(self._bench.context.gate) as offer:
            done = await self._bench.run((f"mcp__s__{name}", arguments), extra=offer.tools)
            return done.records[0]


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> Desk:
    return Desk(monkeypatch, bench)


def answering(result: Any, **fields: Any) -> Server:
    """A server whose only tool, `do`, answers with `result`, or raises it."""

    async def answer(context: Any, params: CallToolRequestParams) -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return server([tool("do", **fields)], {"do": answer})


@pytest.mark.parametrize(
    ("hints", "believed", "expected"),
    [
        (None, True, Effect.WRITE),
        (ToolAnnotations(), True, Effect.WRITE),
        (ToolAnnotations(read_only_hint=True), True, Effect.READ),
        (ToolAnnotations(read_only_hint=True, destructive_hint=False), True, Effect.READ),
        (ToolAnnotations(read_only_hint=True, destructive_hint=True), True, Effect.WRITE),
        (ToolAnnotations(read_only_hint=False), True, Effect.WRITE),
        (ToolAnnotations(destructive_hint=False, idempotent_hint=True), True, Effect.WRITE),
        (ToolAnnotations(read_only_hint=True), False, Effect.WRITE),
    ],
)
async def test_hints_become_effects(
    desk: Desk, hints: ToolAnnotations | None, believed: bool, expected: Effect
) -> None:
    """A tool writes unless its server says that it only reads, says nothing against it, and is believed."""
    offer = await desk.offer({"s": server([tool("do", annotations=hints)])}, hints=believed)

    assert [t.effect for t in offer.tools] == [expected]


@pytest.mark.parametrize(
    ("listed", "name"),
    [
        ("git_status", "mcp__s__git_status"),
        ("a.b/c d", "mcp__s__a_b_c_d_"),
        ("x" * 60, "mcp__s__" + "x" * 49 + "_"),
        ("读取", "mcp__s_____"),
        ("", "mcp__s__"),
    ],
)
def test_names_are_those_that_every_provider_takes(listed: str, name: str) -> None:
    """At most 64 of letters, digits, _ and -; a name that had to be changed ends in a piece of the original's hash."""
    made = wire_name(outside.Server("s"), listed, {})

    assert NAME.fullmatch(made)
    assert made.startswith(name)
    assert len(made) <= 64


async def test_names_that_become_the_same_stay_two(desk: Desk) -> None:
    """`a.b` and `a_b` are two tools, and each call reaches its own."""
    made = server([tool("a_b"), tool("a.b"), tool("a/b")])
    offer = await desk.offer({"s": made})
    names = [t.name for t in offer.tools]

    assert len(set(names)) == 3
    for name, listed in zip(names, ("a_b", "a.b", "a/b"), strict=True):
        record = await desk.call(made, name.removeprefix("mcp__s__"))
        assert record.shown == f"{listed} {{}}"


async def test_a_name_that_is_listed_twice_is_on_offer_once(desk: Desk) -> None:
    """Two tools of one name cannot be told apart: the second is left out, and said so."""
    offer = await desk.offer({"s": server([tool("do"), tool("do"), tool("do")])})

    assert len({t.name for t in offer.tools}) == len(offer.tools)
    assert offer.servers[0].left_out + offer.servers[0].tools == 3


async def test_two_servers_may_list_the_same_names(desk: Desk) -> None:
    """Tools are named by their server too."""
    offer = await desk.offer({"a": server([tool("do")]), "b": server([tool("do")])})

    assert [t.name for t in offer.tools] == ["mcp__a__do", "mcp__b__do"]


@pytest.mark.parametrize(
    ("listed", "offered"), [(MAX_TOOLS, MAX_TOOLS), (MAX_TOOLS + 1, MAX_TOOLS), (500, MAX_TOOLS)]
)
async def test_a_server_with_too_many_tools_is_cut_with_a_clear_line(
    desk: Desk, listed: int, offered: int
) -> None:
    """The first ones are on offer; the line says how many are not, why, and what chooses others. Pages are followed."""
    many = server([tool(f"t{n}") for n in range(listed)], page=50)
    [seen] = (await desk.offer({"big": many})).servers

    assert (seen.tools, seen.left_out) == (offered, listed - offered)
    assert ("`tools` in [mcp.big] of goalmode.toml chooses" in str(seen)) is (listed > offered)


async def test_all_servers_together_stay_below_what_providers_take(desk: Desk) -> None:
    """Two servers of sixty: a hundred in all."""
    sixty = [tool(f"t{n}") for n in range(60)]
    offer = await desk.offer({"a": server(sixty), "b": server(sixty)})

    assert [seen.tools for seen in offer.servers] == [60, MAX_TOGETHER - 60]
    assert f"at most {MAX_TOGETHER} of all servers" in str(offer.servers[1])


async def test_the_configured_tools_are_the_only_ones_on_offer(desk: Desk) -> None:
    """By the server's own names; one that it does not list is told."""
    made = {"s": server([tool("a"), tool("b"), tool("c")])}
    offer = await desk.offer(made, tools=("c", "a", "d"))

    assert [t.name for t in offer.tools] == ["mcp__s__a", "mcp__s__c"]
    assert "it has no d; it lists a, b, c" in str(offer.servers[0])


async def test_long_descriptions_are_cut_and_their_room_is_bounded(desk: Desk) -> None:
    """No description is longer than the strictest provider takes, and all together fit the room for them."""
    desk.room = 2 * MAX_DESCRIPTION + 1
    offer = await desk.offer({"s": server([tool(f"t{n}", description="d" * 5_000) for n in range(5)])})

    assert [len(t.spec.description) for t in offer.tools] == [MAX_DESCRIPTION] * 2
    assert "would fill the context" in str(offer.servers[0])


async def test_a_server_without_tools_is_no_trouble(desk: Desk) -> None:
    """It may have none, and may not even know the request."""
    offer = await desk.offer({"empty": server([]), "mute": Server("mute")})

    assert [str(seen) for seen in offer.servers] == ["MCP server empty: 0 tools", "MCP server mute: 0 tools"]


async def test_without_the_extra_each_server_says_how_to_install_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is imported, nothing started, and one line says what is missing."""
    monkeypatch.setattr(offering, "installed", lambda: False)
    offer = await desk.offer({"s": server([tool("do")])})

    assert offer.tools == ()
    assert "MCP server s: it needs the extra: pip install 'goalmode[mcp]'" in str(offer.servers[0])


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ([TextContent(text="one"), TextContent(text="two")], "one\n\ntwo"),
        ([], "(no result)"),
        (
            [ImageContent(data=PIXEL, mime_type="image/png")],
            "[image: image/png, 15 bytes, sha256 a8626d27cb132ba0; it is not shown]",
        ),
        (
            [AudioContent(data="!!!", mime_type="audio/wav")],
            "[audio: audio/wav, 3 characters that are no base64; it is not played]",
        ),
        (
            [
                ResourceLink(
                    uri="file:///a.csv", name="a", mime_type="text/csv", size=9, description="The table."
                )
            ],
            "[resource: a, file:///a.csv, text/csv, 9 bytes, The table.]",
        ),
        (
            [EmbeddedResource(resource=TextResourceContents(uri="note://1", text="hello"))],
            "[resource: note://1]\nhello",
        ),
        (
            [
                EmbeddedResource(
                    resource=BlobResourceContents(uri="blob://1", blob=PIXEL, mime_type="image/png")
                )
            ],
            "[resource: blob://1, image/png, 15 bytes, sha256 a8626d27cb132ba0; it is not shown]",
        ),
    ],
    ids=["text", "nothing", "image", "audio", "link", "text resource", "blob"],
)
async def test_every_kind_of_content_becomes_text(desk: Desk, content: list[Any], shown: str) -> None:
    """What is no text is a reference with kind, size and hash; base64 never reaches the model."""
    record = await desk.call(answering(CallToolResult(content=content)))

    assert (record.outcome, record.shown) == (OK, shown)
    assert PIXEL not in record.shown + record.body


@pytest.mark.parametrize(
    ("structured", "texts", "shown"),
    [
        ({"a": 1}, [], '{"a": 1}'),
        ({"a": 1}, ["see"], 'see\n\n{"a": 1}'),
        ({"a": 1}, ['{ "a":1 }'], '{ "a":1 }'),
        ({"result": "x"}, ["x"], "x"),
        ({"result": ["x", "y"]}, ["x", "y"], "x\n\ny"),
        ({"content": "x"}, ["x"], "x"),
    ],
)
async def test_structured_content_is_told_once(
    desk: Desk, structured: dict[str, Any], texts: list[str], shown: str
) -> None:
    """It is shown as JSON, unless the text says the same, as the protocol recommends."""
    content: list[Any] = [TextContent(text=text) for text in texts]
    record = await desk.call(answering(CallToolResult(content=content, structured_content=structured)))

    assert record.shown == shown


async def test_structured_content_that_repeats_a_picture_does_not_show_its_bytes(desk: Desk) -> None:
    """Servers hand on their blocks as structured content too, and files as base64 texts: both are references."""
    image = ImageContent(data=PIXEL, mime_type="image/png")
    blocks = {"content": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]}
    twice = await desk.call(answering(CallToolResult(content=[image], structured_content=blocks)))
    file = base64.b64encode(bytes(600)).decode()
    alone = await desk.call(answering(said("read", structured_content={"files": [{"bytes": file, "n": 1}]})))

    assert twice.shown.count("[image: ") == 1
    assert PIXEL not in twice.body
    assert alone.shown.startswith('read\n\n{"files": [{"bytes": "[600 bytes, sha256 ')
    assert file not in alone.body


async def test_a_result_that_breaks_the_tools_own_schema_is_told_all_the_same(desk: Desk) -> None:
    """The call was made: what it returned is not thrown away for its form."""
    wants = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    record = await desk.call(answering(said("moved", structured_content={"n": "x"}), output_schema=wants))

    assert record.outcome is OK
    assert record.shown.startswith("moved")


async def test_an_error_of_a_tool_is_a_failed_call(desk: Desk) -> None:
    """`isError` tells the model, and ends nothing."""
    record = await desk.call(answering(said("no such branch", is_error=True)))

    assert (record.outcome, record.shown) == (FAILED, "no such branch")


@pytest.mark.parametrize(
    "raised",
    [RuntimeError("boom"), ValueError("what?")],
)
async def test_an_error_of_a_server_names_it(desk: Desk, raised: Exception) -> None:
    """A protocol error is an error result, of one line, that names the server."""
    record = await desk.call(answering(raised))

    assert record.outcome is FAILED
    assert record.shown.startswith("MCP server s: ")
    assert "\n" not in record.shown


async def test_any_json_object_reaches_the_server(desk: Desk) -> None:
    """The server itself checks arguments: schemas may say what our own check does not know."""
    odd = {"type": "object", "properties": {"n": {"type": ["integer", "null"]}, "m": {"$ref": "#/$defs/M"}}}
    record = await desk.call(server([tool("do", input_schema=odd)]), n=None, m={"deep": [1]}, other="x")

    assert record.shown == "do {'n': None, 'm': {'deep': [1]}, 'other': 'x'}"


async def test_a_call_has_its_own_time_limit(desk: Desk) -> None:
    """After `call_seconds` it is answered with an error; the server is told, and goes on."""
    left: list[str] = []

    async def hang(context: Any, params: CallToolRequestParams) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            left.append("told")

    made = {"s": server([tool("hang"), tool("do")], {"hang": hang})}
    async with desk.servers(made, call_seconds=0.5).running(desk._bench.context.gate) as offer:
        done = await desk._bench.run(("mcp__s__hang", {}), ("mcp__s__do", {}), extra=offer.tools)

    assert [r.outcome for r in done.records] == [FAILED, OK]
    assert "ended after its time limit of 0.5 seconds" in done.records[0].shown
    assert left == ["told"]


async def test_reads_of_one_reply_run_at_the_same_time(desk: Desk) -> None:
    """Two calls of tools that only read wait for each other, which they could not one after another."""
    both = anyio.Event()
    inside = 0

    async def meet(context: Any, params: CallToolRequestParams) -> Any:
        nonlocal inside
        inside += 1
        if inside == 2:
            both.set()
        await both.wait()
        return said("met")

    reads = ToolAnnotations(read_only_hint=True)
    made = {"s": server([tool("meet", annotations=reads)], {"meet": meet})}
    async with desk.servers(made).running(desk._bench.context.gate) as offer:
        with anyio.fail_after(60):
            done = await desk._bench.run(("mcp__s__meet", {}), ("mcp__s__meet", {}), extra=offer.tools)

    assert [r.outcome for r in done.records] == [OK, OK]


async def test_a_call_after_the_end_starts_the_server_again(desk: Desk) -> None:
    """A wakeup whose close was refused goes on: its servers are there again."""
    made = desk.servers({"s": server([tool("do")])})
    async with made.running(desk._bench.context.gate) as offer:
        await made.close()
        done = await desk._bench.run(("mcp__s__do", {}), extra=offer.tools)

    assert done.records[0].outcome is OK


async def test_what_the_body_raises_comes_out_as_it_is(desk: Desk) -> None:
    """Not wrapped in a group of errors, whatever kind it is."""
    for error in (Fenced(), RuntimeError("ours")):
        with pytest.raises(type(error)) as raised:
            async with desk.servers({"s": server([tool("do")])}).running(desk._bench.context.gate):
                raise error
        assert raised.value is error


HAND_OVER = {"status": "waiting_human", "action": "sign", "wait_reason": "a contract", "session_id": "s-1"}
DECLARES = {"type": "object", "properties": {"status": {"type": "string"}, "session_id": {"type": "string"}}}


@pytest.mark.parametrize(
    ("declared", "structured", "outcome", "reason"),
    [
        (DECLARES, HAND_OVER, OK, ExitReason.WAITING_HUMAN),
        ({"anyOf": [DECLARES, ANY]}, HAND_OVER, OK, ExitReason.WAITING_HUMAN),
        (ANY, HAND_OVER, OK, None),
        (None, HAND_OVER, OK, None),
        (DECLARES, {"status": "ok", "session_id": "s-1"}, OK, None),
        (DECLARES, {**HAND_OVER, "session_id": " "}, FAILED, None),
    ],
    ids=["declared", "declared in a union", "not declared", "no schema", "no hand-over", "blank session"],
)
async def test_only_a_tool_that_declares_it_is_listened_to(
    desk: Desk, declared: Any, structured: Any, outcome: CallOutcome, reason: ExitReason | None
) -> None:
    """What a fetched page says ends nothing; what a declared hand-over says wrongly is an error."""
    made = answering(said("…", structured_content=structured), output_schema=declared)
    record = await desk.call(made)

    assert record.outcome is outcome
    assert (record.exit.reason if record.exit else None) == reason


async def test_an_address_that_a_person_must_open_first_is_a_hand_over(desk: Desk) -> None:
    """The error of 2025-11-25 that asks for it: the goal waits, with what to open and why."""
    asked = ElicitRequestURLParams(
        message="Sign in first.", url="https://id.example/x?state=1", elicitation_id="e1"
    )
    record = await desk.call(answering(UrlElicitationRequiredError([asked])))

    assert record.exit.reason is ExitReason.WAITING_HUMAN
    assert record.exit.question.text.startswith("Sign in first.\nOpen https://id.example/x?state=1")
    assert record.exit.facts["session_id"].startswith("s-")


async def test_what_else_a_server_asks_for_is_refused_by_name(desk: Desk) -> None:
    """Sampling is not offered: the call fails, and says so."""
    wants = CreateMessageRequest(params=CreateMessageRequestParams(messages=[], max_tokens=5))
    record = await desk.call(answering(InputRequiredResult(input_requests={"m": wants})))

    assert record.outcome is FAILED
    assert record.shown == "MCP server s: asks for sampling/createMessage, which is not offered here"


async def test_a_server_that_asks_to_be_called_again_and_again_is_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets ten rounds."""
    monkeypatch.setattr("goalmode.tools.mcp_server._ROUND_SECONDS", 0)
    record = await desk.call(answering(InputRequiredResult(request_state="more")))

    assert record.outcome is FAILED
    assert "again, and again" in record.shown


WIRE = {
    "empty": ({}, {"type": "object", "properties": {}}),
    "no object": ("text", {"type": "object", "properties": {}}),
    "an array": ({"type": "array"}, {"type": "object", "properties": {}}),
    "types that are none": (
        {"type": "object", "properties": {"a": {"type": "text"}, "b": {"type": ["string", "null", "x"]}}},
        {"type": "object", "properties": {"a": {}, "b": {"type": ["string", "null"]}}},
    ),
    "required of nothing": (
        {"properties": {"a": {}}, "required": ["a", "b", 3, "a"]},
        {"type": "object", "properties": {"a": {}}, "required": ["a"]},
    ),
    "a union at the top": (
        {"anyOf": [{"properties": {"a": {}}}], "properties": {"b": {}}},
        {"type": "object", "properties": {"b": {}}},
    ),
    "references": (
        {
            "properties": {"a": {"$ref": "#/$defs/A", "description": "the a"}, "b": {"$ref": "https://x/y"}},
            "$defs": {"A": {"type": "string", "description": "any", "maxLength": 3}},
        },
        {
            "type": "object",
            "properties": {"a": {"type": "string", "description": "the a", "maxLength": 3}, "b": {}},
        },
    ),
    "one of": (
        {"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "null"}]}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
    ),
    "an array of what": (
        {"properties": {"a": {"type": "array"}, "b": {"type": "array", "items": {"type": "string"}}}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {}},
                "b": {"type": "array", "items": {"type": "string"}},
            },
        },
    ),
    "keywords of the wrong kind": (
        {"properties": {"a": {"enum": "x", "minLength": -1, "pattern": "(", "maximum": "9", "title": 3}}},
        {"type": "object", "properties": {"a": {}}},
    ),
    "a name that no provider takes": (
        {"properties": {"ok": {}, "no good": {}, "x" * 65: {}}, "required": ["no good"]},
        {"type": "object", "properties": {"ok": {}}},
    ),
    "too large": (
        {"properties": {f"p{n}": {"description": "d" * 100} for n in range(200)}},
        {"type": "object", "properties": {}},
    ),
    "a half character": (
        {"properties": {"a": {"description": "\ud800\x00"}}},
        {"type": "object", "properties": {"a": {"description": "\ufffd␀"}}},
    ),
}


@pytest.mark.parametrize("case", WIRE)
def test_schemas_are_those_that_every_provider_takes(case: str) -> None:
    """References are written out, what is not valid is left out, and the top is an object."""
    given, expected = WIRE[case]

    assert schema_for_wire(given) == expected


def test_a_schema_without_end_has_one_here() -> None:
    """One that refers to itself in several places neither hangs nor grows."""
    node = {"type": "object", "properties": {f"c{n}": {"$ref": "#/$defs/N"} for n in range(9)}}
    made = schema_for_wire({"properties": {"root": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    loop = schema_for_wire(
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}
    )

    assert len(json.dumps(made)) < 20_000
    assert loop == {"type": "object", "properties": {"a": {}}}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "required",
                    "items",
                    "anyOf",
                    "oneOf",
                    "enum",
                    "$ref",
                    "default",
                    "pattern",
                    "a",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=60)
@given(schema=_JSON)
def test_no_schema_of_anybodys_breaks_a_request(schema: Any) -> None:
    """Whatever a server lists, the strict lint finds nothing in the request that tells of it."""
    parameters = schema_for_wire(schema)
    function = {"name": "mcp__s__do", "description": "", "parameters": parameters}

    assert lint([{"role": "user", "content": "x"}], [{"type": "function", "function": function}]) == []
    assert json.loads(json.dumps(parameters, allow_nan=False))["type"] == "object"
    assert isinstance(parameters["properties"], dict)
