export function delegate(agent, dir) {
  return new Promise((resolve) => {
    const poll = setInterval(() => {
      if (existsSync(`${dir}/result.md`)) {
        clearInterval(poll);
        resolve("done"); // expect: file-existence
      }
    }, 500);
    agent.start();
  });
}
