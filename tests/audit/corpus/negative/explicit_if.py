"""The same by `if`, over an enumeration, with a helper that knows the bad reasons."""


class Agent:
    async def run(self, messages):
        while True:
            reply = await self.client.create(messages)
            self.check(reply)
            if not reply.tool_calls:
                return reply.text
            messages.extend(await self.execute(reply.tool_calls))

    def check(self, reply):
        if reply.finish_reason in (FinishReason.LENGTH, FinishReason.CONTENT_FILTER):
            raise Incomplete(reply.finish_reason)
