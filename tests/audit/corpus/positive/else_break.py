"""The exit stands in the else of the tools, and sets a flag."""


async def act(provider, state, tools):
    done = False
    while not done:
        reply = await provider.generate(state.messages)
        if len(reply.tool_calls) > 0:
            for call in reply.tool_calls:
                state.messages.append(await tools.call(call))
        else:
            state.answer = reply.text
            done = True  # expect: not-tool-use
    return state
