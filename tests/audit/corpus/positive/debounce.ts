export class SubagentSession {
  private timer?: NodeJS.Timeout;

  onToken(token: string) {
    this.buffer += token;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.finished = true; // expect: timeout
      this.emit("text", this.buffer);
    }, 5000);
  }
}
