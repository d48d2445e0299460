"""Many command lines, one after the other, in one real process: what a test of every command can afford.

python many.py FILE, where FILE holds [[{"NAME": "value"}, ["show", "ID"]], …]; between the outputs stands a mark on
both streams.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from goalmode.cli import main

MARK = "=== {} {} ==="


def run(path: str) -> None:
    main._speak_utf8()
    for number, (environment, arguments) in enumerate(json.loads(Path(path).read_text("utf-8"))):
        os.environ.update(environment)
        code = main.call(arguments)
        for name in environment:
            del os.environ[name]
        for stream in (sys.stdout, sys.stderr):
            stream.write(f"\n{MARK.format(number, code)}\n")
            stream.flush()


if __name__ == "__main__":
    run(sys.argv[1])
