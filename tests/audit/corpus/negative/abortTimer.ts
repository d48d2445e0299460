export async function ask(agent: Agent, prompt: string) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), 30_000);
  try {
    return await agent.run(prompt, { signal: controller.signal });
  } finally {
    clearTimeout(timer);
  }
}
