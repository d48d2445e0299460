const SAFETY_TIMEOUT = 120_000;

export async function run(agent: Agent, messages: Message[]) {
  const started = Date.now();
  while (true) {
    const res = await agent.step(messages);
    if (res.stopReason === "end_turn") return { status: "complete" };
    if (res.stopReason === "max_tokens") return { status: "truncated" };
    if (res.stopReason !== "tool_use") throw new Error(res.stopReason);
    if (Date.now() - started > SAFETY_TIMEOUT) break;
  }
  return { status: "failed" };
}
