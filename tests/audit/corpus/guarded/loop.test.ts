export async function run(llm: Llm, messages: Message[]) {
  let idle = 0;
  while (idle < 3) {
    const res = await llm.chat(messages);
    if (!res.toolCalls.length) idle++;
  }
}
