"""GenericAgent's wakeups: our loop decides, GenericAgent's loop asks its model and runs its tools. No patch to it.

`module.py` is the file for `agentmain.py --reflect`; `installed.py` drives the package from PyPI, which has no hooks.
"""
