"""Nothing but the clock ends the loop."""

import time


def research(agent, question, seconds=60):
    started = time.monotonic()
    notes = []
    while time.monotonic() - started < seconds:  # expect: timeout
        reply = agent.step(question)
        if reply.tool_calls:
            notes.extend(agent.execute(reply.tool_calls))
    return notes
