"""Whatever ends the turn, its reason goes to the caller."""


def turn(llm, messages, tools):
    while True:
        reply = llm.chat(messages)
        if not reply.tool_calls:
            return Turn(text=reply.text, stop_reason=reply.stop_reason)
        messages.extend(tools.run(reply.tool_calls))
