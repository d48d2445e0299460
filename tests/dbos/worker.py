"""`goalmode serve --engine dbos` that counts a delivery as lost sooner, and that may die by kill -9 with one in hand.

python worker.py UNCLAIMED_SECONDS LIVES|DIES ARGUMENT…
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from goalmode.cli.main import main
from goalmode.state import deliveries


def die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    deliveries.UNCLAIMED_SECONDS = float(sys.argv[1])
    if sys.argv[2] == "DIES":
        deliveries.arrived = die  # type: ignore[assignment]
    sys.argv = ["goalmode", "serve", "--engine", "dbos", *sys.argv[3:]]
    main()
