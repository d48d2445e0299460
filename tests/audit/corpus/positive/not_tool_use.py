"""Anthropic's wire: anything but tool_use is returned."""


def loop(client, messages):
    response = client.messages.create(model="m", max_tokens=1024, messages=messages)
    while response.stop_reason == "tool_use":  # expect: not-tool-use
        messages.append({"role": "assistant", "content": response.content})
        messages.append(results(response))
        response = client.messages.create(model="m", max_tokens=1024, messages=messages)
    return response.content[0].text


def results(response):
    return {"role": "user", "content": [block.id for block in response.content]}
