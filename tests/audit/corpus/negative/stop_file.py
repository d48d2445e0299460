"""A file by which somebody stops the run is a signal."""

from pathlib import Path


def run(agent, messages):
    stop = Path("STOP")
    while True:
        reply = agent.step(messages)
        if stop.exists():
            return "stopped by the user"
        if reply.stop_reason == "end_turn":
            return reply.text
        if reply.stop_reason in ("max_tokens", "refusal"):
            return reply.stop_reason
