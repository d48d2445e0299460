"""The bound is a setting; the counter is an attribute."""


class Orchestrator:
    def __init__(self, client, max_idle_iterations=2):
        self.client = client
        self.max_idle_iterations = max_idle_iterations
        self.consecutive_idle = 0

    async def run(self, task):
        messages = [{"role": "user", "content": task}]
        while True:
            response = await self.client.messages.create(model="m", max_tokens=4096, messages=messages)
            calls = [block for block in response.content if block.type == "tool_use"]
            if calls:
                self.consecutive_idle = 0
                messages.append(await self.execute(calls))
            else:
                self.consecutive_idle = self.consecutive_idle + 1
            if self.consecutive_idle >= self.max_idle_iterations:
                break  # expect: idle-count
        return messages
