"""A timeout beside an explicit signal is a safety net."""

import time

LIMIT = 120


def run(llm, messages, tools):
    started = time.monotonic()
    while True:
        if time.monotonic() - started > LIMIT:
            return {"status": "timed_out"}
        reply = llm.chat(messages)
        if reply.stop_reason == "end_turn":
            return {"status": "complete"}
        if reply.stop_reason == "max_tokens":
            return {"status": "truncated"}
        if reply.stop_reason != "tool_use":
            raise RuntimeError(reply.stop_reason)
        messages.extend(tools.run(reply.tool_calls))
