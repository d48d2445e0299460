export async function work(agent, prompt) {
  let noToolCalls = 0;
  let turn = await agent.send(prompt);
  do { // expect: idle-count
    for (const call of turn.toolCalls) await agent.execute(call);
    if (turn.toolCalls.length === 0) noToolCalls++;
    turn = await agent.send("continue");
  } while (noToolCalls < 2);
  return turn.text;
}
