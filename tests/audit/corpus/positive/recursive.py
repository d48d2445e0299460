"""The loop is a function that calls itself."""


class Agent:
    def turn(self, messages):
        response = self.llm.invoke(messages)
        if response.tool_calls:
            return self.turn([*messages, response, *self.tools.run(response.tool_calls)])
        return response.content  # expect: not-tool-use
