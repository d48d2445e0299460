"""Of all terminal reasons only end_turn is known; what is cut off is sent round again."""


def converse(client, messages, tools):
    while True:
        reply = client.messages.create(model="m", messages=messages, tools=tools)
        messages.append({"role": "assistant", "content": reply.content})
        if reply.stop_reason == "end_turn":
            return reply.content  # expect: end-turn-alone
        for block in reply.content:
            if block.type == "tool_use":
                messages.append(tools.execute(block))
