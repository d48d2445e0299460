"""Guards count, tell, then give up with a name."""
