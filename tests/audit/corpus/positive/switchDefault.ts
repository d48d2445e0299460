export async function drive(model: Model, context: Context) {
  for (;;) {
    const reply = await model.respond(context);
    switch (reply.stopReason) {
      case "tool_use":
        context = context.with(await context.tools.run(reply.toolCalls));
        continue;
      default:
        return { status: "complete", text: reply.text }; // expect: not-tool-use
    }
  }
}
