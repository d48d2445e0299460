export async function explore(llm: Llm, messages: Message[], ms: number) {
  const deadline = Date.now() + ms;
  while (Date.now() < deadline) { // expect: timeout
    const res = await llm.chat(messages);
    for (const call of res.toolCalls) {
      messages.push(await execute(call));
    }
  }
  return { status: "complete", messages };
}
