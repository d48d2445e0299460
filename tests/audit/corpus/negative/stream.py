"""Pieces of one reply are put together."""


async def collect(client, messages):
    calls = []
    async for chunk in await client.chat.completions.create(model="m", messages=messages, stream=True):
        delta = chunk.choices[0].delta
        if delta.tool_calls:
            calls.extend(delta.tool_calls)
        if chunk.choices[0].finish_reason:
            break
    return calls
