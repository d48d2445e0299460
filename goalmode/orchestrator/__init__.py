"""Goals over many wakeups: the ways in and out of a wakeup, what an ending means for the goal, and recovery."""
