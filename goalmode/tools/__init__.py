"""Plan, execute, record: what happens to the calls of one reply, one question per file."""
