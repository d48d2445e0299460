"""A history is searched for the last reply that asked for tools."""


def pending(messages):
    for message in reversed(messages):
        if message.role != "assistant":
            continue
        if not message.tool_calls:
            return []
        return message.tool_calls
    return []


def drain(queue, tools):
    tool_calls = list(queue)
    while tool_calls:
        tools.execute(tool_calls.pop(0))
