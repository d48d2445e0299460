def run(llm, messages, tools):
    while True:
        reply = llm.chat(messages)
        if not reply.tool_calls:
            return reply.content
        messages.extend(tools.run(reply.tool_calls))
