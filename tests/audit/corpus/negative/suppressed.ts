// ax-audit-ignore:comm-no-completion-signal, timeout is safety net, primary signal is the process
export async function watch(agent: AgentProcess) {
  let lastOutput = Date.now();
  while (true) {
    if (await agent.poll()) lastOutput = Date.now();
    if (Date.now() - lastOutput > 60_000) return;
  }
}
