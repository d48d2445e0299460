export function useAgent(llm) {
  return async (messages) => {
    while (true) {
      const reply = await llm.chat(messages);
      if (reply.toolCalls.length === 0) {
        return { text: reply.text, finish: mapFinishReason(reply.finishReason) };
      }
      messages.push(...(await runTools(reply.toolCalls)));
    }
  };
}
