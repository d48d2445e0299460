"""A process is waited for, in an agent's own code."""

import os
import time


class AgentRuntime:
    def start_server(self, process, socket_path):
        deadline = time.monotonic() + 10
        while not os.path.exists(socket_path):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the server did not start")
            time.sleep(0.1)

    def wait(self, process):
        while process.poll() is None:
            time.sleep(0.1)
        return process.returncode
