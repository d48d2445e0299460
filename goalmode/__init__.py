"""goalmode: keeps an agent's long goal alive over rebuilt contexts, and says why every wakeup ended."""
