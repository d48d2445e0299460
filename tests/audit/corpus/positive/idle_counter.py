"""A pause to think counts as being idle."""


def run(llm, messages, tools):
    idle = 0
    while idle < 3:  # expect: idle-count
        reply = llm.chat(messages, tools=tools)
        if not reply.tool_calls:
            idle += 1
            continue
        idle = 0
        for call in reply.tool_calls:
            messages.append(tools.execute(call))
    return {"status": "complete"}
