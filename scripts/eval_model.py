"""Does replayed completion prose make a real model of 135 million parameters stop? On this machine, without a key.

What is asked is `goalmode eval pollution`. The answers stay in a directory: what was stopped goes on with the same
command. It takes some minutes; `--quick` asks half of the goals.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from demo_model import served

OUT = Path("build") / "pollution-smollm2"
PORT = 18_135
"""The same each time: answers of another address are answers of another model."""

CONFIG = """\
[models.smollm2]
wire = "openai"
base_url = "{base_url}"
window = 8192
max_output = 128
context_tokens = 4000
encoding = ""
token_factor = 1.3
"""

SECTIONS = "objective, deliverables, progress_summary, established, pending_verification, last_wakeup"
TEMPLATES = {
    "en/system": "You work on a goal by calling tools.",
    "en/goal": 'Goal: {{ sections | map("trim") | select | join("\\n") }}',
    "zh/system": "你通过调用工具来完成目标。",
    "zh/goal": '目标：{{ sections | map("trim") | select | join("\\n") }}',
}
"""In place of the package's own: a model this small loses its way in more than a few lines."""

SECTION = """\
{{% if section.name in {names} %}}
{{{{ section.items | join(" ") }}}}
{{% endif %}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--model-python", type=Path, required=True, help="interpreter with demo_model.txt installed"
    )
    parser.add_argument("--out", type=Path, default=OUT, help=f"where the answers stay [default: {OUT}]")
    parser.add_argument("--quick", action="store_true", help="half of the goals, 0, 5 and 20 turns")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with served(given.model_python, given.out / "server.log", PORT) as base_url:
        configure(given.out, base_url)
        code = evaluate(given.out, quick=given.quick)
    print(f"\nexit code {code}, after {time.monotonic() - started:.0f} s", file=sys.stderr)
    return code


def configure(room: Path, base_url: str) -> None:
    (room / "goalmode.toml").write_text(CONFIG.format(base_url=base_url))
    section = SECTION.format(names=tuple(SECTIONS.split(", ")))
    for name, text in {**TEMPLATES, "en/section": section, "zh/section": section}.items():
        file = room / "templates" / f"{name}.j2"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def evaluate(room: Path, *, quick: bool) -> int:
    """`goalmode eval pollution`, to its end. Ctrl-C is its business: it says how to go on."""
    command = [sys.executable, "-m", "goalmode", "eval", "pollution", "--model", "smollm2", "--yes"]
    command += ["--config", str(room / "goalmode.toml"), "--out", str(room), *(["--quick"] if quick else [])]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GOALMODE_")}
    with subprocess.Popen(command, env=environment) as asking:
        while True:
            with suppress(KeyboardInterrupt):
                return asking.wait()


if __name__ == "__main__":
    sys.exit(main())
