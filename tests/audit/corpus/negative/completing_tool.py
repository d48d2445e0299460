"""Only a tool completes; replies without one are counted, and end as what they are."""


def run(model, messages, tools):
    idle = 0
    while True:
        reply = model.complete(messages)
        if not reply.tool_calls:
            idle += 1
            if idle > 3:
                return {"status": "stalled"}
            messages.append({"role": "user", "content": "Call a tool, or `task_complete`."})
            continue
        for call in reply.tool_calls:
            if call.name == "task_complete":
                return {"status": "complete"}
            messages.append(tools.execute(call))
