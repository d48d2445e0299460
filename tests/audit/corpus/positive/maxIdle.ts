export class Orchestrator {
  private consecutiveIdle = 0;

  async run(task: string, options = { maxIdleIterations: 2 }): Promise<Result> {
    const messages: Message[] = [{ role: "user", content: task }];
    for (;;) {
      const reply = await this.model.generate(messages);
      if (reply.toolCalls?.length) {
        this.consecutiveIdle = 0;
        messages.push(...(await this.runTools(reply.toolCalls)));
      } else {
        this.consecutiveIdle += 1;
      }
      if (this.consecutiveIdle >= options.maxIdleIterations) {
        return { status: "complete", messages }; // expect: idle-count
      }
    }
  }
}
