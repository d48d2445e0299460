export async function drive(model: Model, history: Message[]) {
  for (;;) {
    const { message, finishReason } = await model.generate(history);
    const toolCalls = message.content.filter((part) => part.type === "tool-call");
    if (finishReason === FinishReason.MaxTokens && toolCalls.length === 0) {
      throw new Error("the reply was cut off");
    }
    if (toolCalls.length === 0) return message;
    history.push(...(await executeToolCalls(toolCalls)));
  }
}
