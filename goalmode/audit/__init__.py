"""Finds code that guesses when an agent is done, in Python, TypeScript and JavaScript.

The rule, `comm-no-completion-signal`: a loop that decides whether an agent goes on must end on what the model or the
run says (a terminal reason, a tool call that completes the task), never on idling, on a clock or on a file.
"""
