export async function watch(agent: AgentProcess): Promise<string[]> {
  const seen: string[] = [];
  let lastMessageAt = Date.now();
  while (true) {
    const message = await agent.poll();
    if (message) {
      seen.push(message);
      lastMessageAt = Date.now();
    }
    if (Date.now() - lastMessageAt > 8_000) return seen; // expect: timeout
    await sleep(250);
  }
}
