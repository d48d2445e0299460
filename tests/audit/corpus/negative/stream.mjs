export async function collect(client, messages) {
  const toolCalls = [];
  const stream = await client.chat.completions.create({ messages, stream: true });
  for await (const chunk of stream) {
    const choice = chunk.choices[0];
    if (choice.delta.tool_calls) toolCalls.push(...choice.delta.tool_calls);
    if (choice.finish_reason === "stop") break;
  }
  return toolCalls;
}
