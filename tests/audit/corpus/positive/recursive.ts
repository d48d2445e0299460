export class Agent {
  async step(messages: Message[]): Promise<string> {
    const reply = await this.llm.chat(messages);
    if (reply.toolCalls.length > 0) {
      const results = await this.tools.execute(reply.toolCalls);
      return this.step([...messages, reply, ...results]);
    }
    return reply.text; // expect: not-tool-use
  }
}
