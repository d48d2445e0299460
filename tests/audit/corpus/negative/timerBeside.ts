export class AgentView {
  constructor(private readonly agent: Agent) {
    agent.on("RUN_FINISHED", () => this.finish());
    this.timer = setTimeout(() => this.finish(), 600_000);
  }

  finish() {
    clearTimeout(this.timer);
    this.running = false;
  }
}
