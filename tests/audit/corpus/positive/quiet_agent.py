"""An agent that has printed nothing for a while is taken to be done."""

import time


def collect(agent):
    last_output = time.time()
    lines = []
    while True:
        line = agent.read_line()
        if line:
            lines.append(line)
            last_output = time.time()
        elif time.time() - last_output > 10:
            return lines  # expect: timeout
        time.sleep(0.1)
