"""A reply without tool calls becomes a call that the model did not make, and that ends the loop."""


def runner(client, messages, handler):
    while True:
        response = client.chat(messages=messages)
        if not response.tool_calls:
            calls = [{"name": "no_tool", "args": {}}]  # expect: not-tool-use
        else:
            calls = [{"name": tc.function.name} for tc in response.tool_calls]
        prompts = [handler.dispatch(call) for call in calls]
        if not any(prompts):
            break
        messages = [{"role": "user", "content": prompts}]
