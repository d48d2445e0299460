"""Somebody has thought about it, and says so."""

# ax-audit-ignore:comm-no-completion-signal, the demonstration ends when nobody asks for tools


def run(llm, messages, tools):
    while True:
        reply = llm.chat(messages)
        if not reply.tool_calls:
            return reply.content
        messages.extend(tools.run(reply.tool_calls))
