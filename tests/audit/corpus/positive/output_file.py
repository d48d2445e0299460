"""The sub-agent's output file is there, if only with its first byte."""

import os
import time


def wait_for_subagent(subagent, folder):
    subagent.start()
    output = os.path.join(folder, "output.md")
    while not os.path.exists(output):  # expect: file-existence
        time.sleep(1)
        subagent.log("waiting")
    with open(output) as file:
        return file.read()
