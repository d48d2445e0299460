"""One wakeup: turns until something ends it. `wakeup.py` is the page."""
