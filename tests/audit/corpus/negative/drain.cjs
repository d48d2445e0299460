async function drain(agent, toolCalls) {
  const results = [];
  while (toolCalls.length > 0) {
    const call = toolCalls.shift();
    results.push(await agent.executeTool(call));
  }
  return results;
}

function lastCalls(messages) {
  for (let i = messages.length - 1; i >= 0; i--) {
    if (!messages[i].tool_calls) return [];
  }
  return messages[0].tool_calls;
}

module.exports = { drain, lastCalls };
