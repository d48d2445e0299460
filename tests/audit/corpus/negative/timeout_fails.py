"""Time that is up is told as such, in a loop and outside of one."""

import asyncio
import time


async def delegate(agent, task):
    try:
        return await asyncio.wait_for(agent.run(task), 300)
    except asyncio.TimeoutError:
        return {"status": "timeout"}


def connect(agent_url, dial):
    last_event = time.time()
    while time.time() - last_event < 30:
        try:
            return dial(agent_url)
        except OSError:
            time.sleep(1)
    raise TimeoutError(agent_url)
