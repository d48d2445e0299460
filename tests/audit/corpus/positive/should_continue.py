"""A graph's edge decides by the tool calls alone."""

END = "__end__"


def should_continue(state):
    last = state["messages"][-1]
    if last.tool_calls:
        return "tools"
    return END  # expect: not-tool-use
