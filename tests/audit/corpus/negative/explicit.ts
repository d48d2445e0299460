// The rule's own fix.
export async function run(llm: Llm, messages: Message[]) {
  while (true) {
    const res = await llm.chat(messages);
    switch (res.stopReason) {
      case "tool_use":
        for (const tc of res.toolCalls) {
          if (tc.name === "task_complete") return { status: "complete", summary: tc.args.summary };
          messages.push({ role: "tool", content: await executeTool(tc) });
        }
        continue;
      case "pause_turn":  continue;
      case "end_turn":    return { status: "complete", content: res.content };
      case "max_tokens":  return { status: "truncated", content: res.content };
      default:            return { status: "failed", reason: res.stopReason };
    }
  }
}
