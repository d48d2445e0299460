"""`run`, `wake` and `serve` with OpenTelemetry and without: who asks for it, and what becomes of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from goalmode.cli.tracing import asked
from goalmode.state import reading
from goalmode.telemetry import exporting
from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests.cli.conftest import CLI

Serve = Callable[..., Stub]

WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written", "evidence": ["a.txt"]})
NAMES = ["chat m", "execute_tool write_file", "chat m", "execute_tool complete", "invoke_agent goalmode"]


@pytest.fixture(autouse=True)
def _fixed_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version without the bug that `serve` warns about."""
    monkeypatch.setattr(reading, "SQLITE_VERSION", (3, 51, 3))


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, ("", "")),
        ({"OTEL_TRACES_EXPORTER": "console"}, ("console", "OTEL_TRACES_EXPORTER")),
        ({"OTEL_TRACES_EXPORTER": " "}, ("", "")),
        ({"OTEL_TRACES_EXPORTER": "None", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ("", "")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, ("otlp", "OTEL_EXPORTER_OTLP_ENDPOINT")),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, ("otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://x"}, ("", "")),
        ({"OTEL_SERVICE_NAME": "x"}, ("", "")),
        ({"OTEL_SDK_DISABLED": "True", "OTEL_TRACES_EXPORTER": "console"}, ("", "")),
    ],
    ids=str,
)
def test_which_variables_ask(environ: dict[str, str], expected: tuple[str, str]) -> None:
    """An exporter, or an address to send to; `none` and the switch of the SDK say no."""
    assert asked(environ) == expected


@pytest.mark.parametrize("command", [["run"], ["serve", "--once"]], ids=str)
def test_a_console_that_is_asked_for(
    cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Spans come on standard error, under the program's name; standard output is as ever."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    uid = cli.new(url=serve([WRITE, DONE]).base_url)
    done = cli(*command, *([uid] if command == ["run"] else []), "--json")

    spans = _values(done.err)
    assert (done.code, [span["name"] for span in spans]) == (0, NAMES)
    assert {span["resource"]["attributes"]["service.name"] for span in spans} == {"goalmode"}
    assert done.events[-1]["kind"] == ("wakeup_closed" if command == ["run"] else "stopped")


def test_spans_are_sent_to_a_server(cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address alone will do: OTLP over HTTP, sent before the command ends, with the headers that let it in."""
    with _collector() as (url, seen):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20let-me-in-please")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "night-shift")
        uid = cli.new(url=serve([WRITE, DONE]).base_url)
        done = cli("run", uid)

    assert (done.code, done.err) == (0, "")
    [(path, headers, body)] = seen
    assert (path, headers["authorization"]) == ("/v1/traces", "Bearer let-me-in-please")
    assert all(name.encode() in body for name in (*NAMES, "night-shift"))
    assert b"hello" not in body


def test_what_lets_spans_in_is_kept_from_tools(
    cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command finds neither the variable nor its value, and what prints it is struck out."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=let-me-in-please-1234,x-dataset=nights")
    look = tool("shell", {"command": "env; echo let-me-in-please''-1234 nights"})
    uid = cli.new(url=serve([look, WRITE, DONE]).base_url)
    cli("run", uid)

    printed = cli("turns", uid, "--full").out

    assert "OTEL_EXPORTER" not in printed
    assert "[redacted] nights" in printed


@pytest.mark.parametrize(
    ("missing", "environ", "why"),
    [
        ("opentelemetry", {"OTEL_TRACES_EXPORTER": "console"}, "pip install 'goalmode[otel]'"),
        ("opentelemetry.sdk", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, "pip install 'goalmode[otel]'"),
        ("", {"OTEL_TRACES_EXPORTER": "zipkin"}, "no exporter 'zipkin'"),
        ("", {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "no exporter 'otlp_proto_grpc'"),
    ],
)  # fmt: skip
def test_what_cannot_be_traced_runs_without(
    cli: CLI,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    missing: str,
    environ: dict[str, str],
    why: str,
) -> None:
    """One line names the variable and what would help, once for all wakeups; the goal is done all the same."""
    if missing:
        _hide(monkeypatch, missing)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    one, two = (cli.new(url=serve([WRITE, DONE]).base_url) for _ in range(2))

    done = cli("serve", "--once")

    assert done.code == 0
    assert f"not traced, though {next(iter(environ))} is set: " in done.line()
    assert why in done.line()
    assert {cli("show", uid, "--json").json["status"] for uid in (one, two)} == {"DONE"}


def test_an_exporter_that_fails_ends_no_run(cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when it is made nor when it sends; a Ctrl-C while it sends is about the sending."""

    class Fails(SpanExporter):
        def export(self, spans: Any) -> Any:
            raise RuntimeError("no route")

        def shutdown(self) -> None:
            raise KeyboardInterrupt

    def refuses(name: str, environ: Any) -> Any:
        raise ValueError("no such compression")

    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setattr(exporting, "_exporter", lambda name, environ: Fails())
    sent = cli("run", cli.new(url=serve([WRITE, DONE]).base_url))
    monkeypatch.setattr(exporting, "_exporter", refuses)
    made = cli("run", cli.new(url=serve([WRITE, DONE]).base_url))

    assert (sent.code, made.code) == (0, 0)
    assert made.line().endswith("OTEL_TRACES_EXPORTER is set: no such compression")


def test_what_the_program_was_started_with_is_used(
    cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by `opentelemetry-instrument`: its provider has the spans, and nothing is set up beside it."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")

    done = cli("wake", cli.new(url=serve([WRITE, DONE]).base_url))

    assert (done.code, done.err) == (0, "")
    assert [span.name for span in kept.get_finished_spans()] == NAMES


@pytest.mark.parametrize("command", [["run"], ["wake"], ["serve", "--once"]], ids=str)
def test_unasked_nothing_of_it_is_loaded(
    cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """A goal runs to its end where no module of OpenTelemetry, or of ours about it, could be had."""
    _hide(monkeypatch, "opentelemetry", "goalmode.telemetry")
    uid = cli.new(url=serve([WRITE, DONE]).base_url)
    done = cli(*command, *([] if "serve" in command else [uid]))

    assert (done.code, done.err) == (0, "")
    assert cli("show", uid, "--json").json["status"] == "DONE"


def test_without_the_extra_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing it names the extra."""
    _hide(monkeypatch, "opentelemetry")

    with pytest.raises(ModuleNotFoundError, match=r"goalmode\[otel\]"):
        import goalmode.telemetry  # noqa: F401


def _hide(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """As if they were not installed."""
    for name in list(sys.modules):
        if f"{name}.".startswith((*(f"{library}." for library in libraries), "goalmode.telemetry.")):
            monkeypatch.delitem(sys.modules, name)
    for library in libraries:
        monkeypatch.setitem(sys.modules, library, None)


def _values(text: str) -> list[dict[str, Any]]:
    """JSON values, one after another."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(text.rstrip()):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


@contextmanager
def _collector() -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """A server that takes what it is sent."""
    seen: list[tuple[str, dict[str, str], bytes]] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Takes)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
