// The rule's own example.
export async function run(llm: Llm, messages: Message[]) {
  let idle = 0;
  while (idle < 3) { // expect: idle-count
    const res = await llm.chat(messages);
    if (!res.toolCalls.length) { idle++; continue; }
    idle = 0;
    await executeTools(res.toolCalls, messages);
  }
}
