"""What happens when the conversation of one wakeup grows too large: one file per policy.

The context policy `rebuild` goes with `sawtooth`. The policy `replay` has none: it exists for comparison, its
conversation only grows, and when the model's window is full the wakeup ends CONTEXT_OVERFLOW.
"""
