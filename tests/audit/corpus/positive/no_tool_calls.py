"""The commonest of all: whatever is no tool call is the answer."""


def answer(client, messages, tools):
    while True:
        response = client.chat.completions.create(model="m", messages=messages, tools=tools)
        message = response.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content  # expect: not-tool-use
        for call in message.tool_calls:
            messages.append(run_tool(call))


def run_tool(call):
    return {"role": "tool", "content": call.function.name}
