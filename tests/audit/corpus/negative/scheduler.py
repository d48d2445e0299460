"""Workers poll a queue and rest when it is empty."""

import time


def serve(store, run_goal, stopping):
    idle = 0
    while not stopping.is_set():
        goal = store.claim()
        if goal is None:
            idle += 1
            if idle > 10:
                break
            time.sleep(1)
            continue
        idle = 0
        run_goal(goal)
