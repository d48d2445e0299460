"""Every terminal reason has a branch."""


def run(llm, messages, tools):
    while True:
        reply = llm.chat(messages)
        match reply.stop_reason:
            case "tool_use":
                for call in reply.tool_calls:
                    if call.name == "task_complete":
                        return {"status": "complete", "summary": call.args["summary"]}
                    messages.append(tools.execute(call))
            case "pause_turn":
                continue
            case "end_turn":
                return {"status": "complete", "content": reply.content}
            case "max_tokens":
                return {"status": "truncated", "content": reply.content}
            case reason:
                return {"status": "failed", "reason": reason}
