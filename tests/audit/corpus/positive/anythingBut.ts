export async function agentLoop(client: Anthropic, messages: MessageParam[]) {
  while (true) {
    const response = await client.messages.create({ model, max_tokens: 4096, messages });
    messages.push({ role: "assistant", content: response.content });
    if (response.stop_reason !== "tool_use") {
      return response.content; // expect: not-tool-use
    }
    messages.push({ role: "user", content: await runTools(response.content) });
  }
}
