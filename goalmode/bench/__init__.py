"""Benchmarks: what a turn costs beside a floor, how it grows with a goal, and what a bounded context forgets."""
