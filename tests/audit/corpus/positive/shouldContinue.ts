export function shouldContinue({ messages }: State) {
  const last = messages[messages.length - 1] as AIMessage;
  return last.tool_calls?.length ? "tools" : "__end__"; // expect: not-tool-use
}
