import { existsSync, readFileSync } from "node:fs";

export async function delegate(agent: Agent, dir: string): Promise<string> {
  const resultPath = `${dir}/result.json`;
  agent.start();
  while (!existsSync(resultPath)) { // expect: file-existence
    await sleep(500);
    agent.ping();
  }
  return readFileSync(resultPath, "utf8");
}
