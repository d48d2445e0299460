export async function waitForDeployment(api: Api, id: string) {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    const job = await api.get(id);
    if (job.status === "completed") return job;
    await sleep(1000);
  }
  throw new Error("the deployment did not come up");
}

export async function waitForFile(path: string) {
  while (!existsSync(path)) await sleep(100);
}
