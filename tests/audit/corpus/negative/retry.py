"""A call is tried again; nothing is decided about an agent."""

import time


def ask(client, messages):
    for attempt in range(3):
        try:
            response = client.chat.completions.create(model="m", messages=messages)
            if not response.choices[0].message.tool_calls:
                return response.choices[0].message.content
            return response.choices[0].message.tool_calls
        except ConnectionError:
            time.sleep(2**attempt)
    return None
