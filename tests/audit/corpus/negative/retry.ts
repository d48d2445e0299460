export async function withRetry(client: Client, messages: Message[]) {
  let emptyRetries = 0;
  while (true) {
    const reply = await client.messages.create({ messages });
    if (reply.content.length > 0) return reply;
    emptyRetries++;
    if (emptyRetries > 3) throw new Error("only empty replies");
  }
}
