export const useChat = (client) => {
  const send = async (history) => {
    for (let step = 0; step < 20; step++) {
      const { choices } = await client.chat.completions.create({ model: "m", messages: history });
      const calls = choices[0].message.tool_calls ?? [];
      if (calls.length === 0) break; // expect: not-tool-use
      for (const call of calls) history.push(await execute(call));
    }
    return history;
  };
  return send;
};
