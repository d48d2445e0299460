export async function chat(client: Client, messages: Message[]) {
  while (true) {
    const res = await client.messages.create({ messages });
    if (res.stop_reason === "end_turn") return res.content; // expect: end-turn-alone
    if (res.stop_reason === "tool_use") {
      messages.push(await executeTools(res.content));
    }
  }
}
