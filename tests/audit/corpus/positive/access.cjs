const fs = require("node:fs/promises");

async function produce(llm, messages, reportPath) {
  while (true) {
    const reply = await llm.complete(messages);
    for (const call of reply.tool_calls ?? []) messages.push(await runTool(call));
    try {
      await fs.access(reportPath);
      break; // expect: file-existence
    } catch {
      messages.push({ role: "user", content: "The report is not there." });
    }
  }
}

module.exports = { produce };
