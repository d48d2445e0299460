"""Does this claim stand? The host looks itself: at the files, at the commands, at what the evidence cites."""
