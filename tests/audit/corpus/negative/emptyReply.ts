// A reply without tools goes on; only one that has nothing at all ends the task, by a person's word.
export async function turns(task: Task, stack: Item[]) {
  while (stack.length > 0) {
    const item = stack.pop();
    const reply = await task.api.createMessage(item);
    const hasTextContent = reply.text.length > 0;
    const hasToolUses = reply.blocks.some((block) => block.type === "tool_use");
    if (hasTextContent || hasToolUses) {
      stack.push(await task.present(reply));
      continue;
    } else {
      await task.say("nothing came");
      return false;
    }
  }
}
