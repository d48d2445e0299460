"""From a goal's stored state to the messages of a wakeup, within a token budget.

Pure: the same snapshot gives the same bytes.
"""
