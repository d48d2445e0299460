"""Many goals, woken as they become due."""
