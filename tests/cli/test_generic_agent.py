"""`goalmode generic-agent`: the file for `--reflect`, Goal Mode's state files, the check of a checkout."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from goalmode.reflect import checkout, module
from goalmode.state import goals
from goalmode.state.store import Store
from tests.cli.conftest import CLI

HOUR = 3600


@pytest.fixture
def state(tmp_path: Path) -> Any:
    """Writes a state file as Goal Mode's manual has it, with changes; None takes a field out."""

    def write(**changes: Any) -> Path:
        folder = tmp_path / "temp"
        folder.mkdir(exist_ok=True)
        made = {
            "objective": "写一份报告",
            "budget_seconds": 3 * HOUR,
            "start_time": datetime.now(UTC).timestamp() - HOUR,
            "turns_used": 4,
            "max_turns": 200,
            "status": "running",
            "done_prompt": "",
            **changes,
        }
        path = folder / "goal_state.json"
        path.write_text(
            json.dumps({k: v for k, v in made.items() if v is not None}, ensure_ascii=False), "utf-8"
        )
        return path

    return write


def goal_of(cli: CLI, uid: str) -> Any:
    with Store(cli.url, readonly=True) as store:
        return goals.find(store, uid)


def test_path_is_the_file_that_genericagent_loads(cli: CLI) -> None:
    assert cli("generic-agent", "path").out.strip() == str(Path(module.__file__))


def test_a_state_file_becomes_a_goal_until_its_budget(cli: CLI, state: Any) -> None:
    """Wall time from its start is the deadline, its wakeups count, `polish` is its workflow, Chinese its language."""
    path = state()
    done = cli("generic-agent", "import", str(path))
    goal = goal_of(cli, done.out.strip())

    assert done.code == 0
    assert (goal.objective, goal.workspace) == ("写一份报告", str(path.parent))
    assert (goal.limits.wakeups, goal.spent.wakeups) == (200, 4)
    left = goal.limits.deadline - datetime.now(UTC)
    assert timedelta(hours=2) - left < timedelta(minutes=1)
    assert (goal.settings.until_budget, goal.settings.workflow.name, goal.settings.lang) == (
        True,
        "polish",
        "zh",
    )
    assert goal.uid in done.err
    assert json.loads(path.read_text("utf-8"))["status"] == "running"


def test_english_is_what_genericagent_says_it_is(
    cli: CLI, state: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GA_LANG", "en")
    uid = cli("generic-agent", "import", str(state()), "--json").json["id"]

    assert goal_of(cli, uid).settings.lang == "en"


def test_what_goal_mode_assumes_is_assumed(cli: CLI, state: Any) -> None:
    """Without a start it begins now, with half an hour and 50 wakeups."""
    missing = dict.fromkeys(
        ["start_time", "budget_seconds", "max_turns", "turns_used", "status", "done_prompt"]
    )
    goal = goal_of(cli, cli("generic-agent", "import", str(state(**missing)), "-q").out.strip())

    assert (goal.limits.wakeups, goal.spent.wakeups) == (50, 0)
    left = (goal.limits.deadline - datetime.now(UTC)).total_seconds()
    assert 1700 < left <= 1800


def test_the_prompt_for_the_end_stays_with_the_objective(cli: CLI, state: Any) -> None:
    path = state(done_prompt="把结果发到群里 {objective} {{ x }}")
    goal = goal_of(cli, cli("generic-agent", "import", str(path), "-q").out.strip())

    assert goal.objective.startswith("写一份报告\n")
    assert goal.objective.endswith("把结果发到群里 {objective} {{ x }}")


def test_the_files_of_a_working_folder_are_known(cli: CLI, state: Any, tmp_path: Path) -> None:
    """What was made before is shown from the first wakeup on; nothing is known of what somebody said of it."""
    (tmp_path / "report" / "img").mkdir(parents=True)
    for name in ("report.md", "img/a.png", ".hidden"):
        (tmp_path / "report" / name).write_text("x")
    uid = cli(
        "generic-agent", "import", str(state()), "--workspace", str(tmp_path / "report"), "-q"
    ).out.strip()

    shown = json.dumps(cli("show", uid, "--json").json)
    assert '"report.md"' in shown
    assert "img/a.png" in shown
    assert ".hidden" not in shown


def test_what_a_handler_held_is_taken_as_the_first_checkpoint(cli: CLI, state: Any) -> None:
    """`working` and `history_info` are no part of Goal Mode's file, and are taken where somebody put them into it."""
    lines = ["[Agent] 调用工具code_run, args: {}", "[Agent] 已全部完成", "[USER]: x"]
    path = state(working={"key_info": "端口 9090", "passed_sessions": 2}, history_info=lines)
    uid = cli("generic-agent", "import", str(path), "-q").out.strip()

    found = cli("show", uid, "--json").json
    assert (found["checkpoint"]["key_info"], found["checkpoint"]["provenance"]) == ("端口 9090", "tool")
    assert [(i["id"], i["text"], i["provenance"]) for i in found["work_items"]] == [
        ("W1", "code_run, args: {}", "tool")
    ]
    assert "taken over before its first wakeup" in cli("show", uid).out
    assert "In the model's words, taken over before the first wakeup" in cli("report", uid).out


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"objective": None}, "objective", "not blank"),
        ({"objective": "  "}, "objective", "not blank"),
        ({"objective": 7}, "objective", "a text"),
        ({"status": "done_budget"}, "status", "used up its budget"),
        ({"status": "wrapping_up"}, "status", "last turn"),
        ({"status": "later"}, "status", "running"),
        ({"status": 1}, "status", "running"),
        ({"budget_seconds": "3h"}, "budget_seconds", "a number of seconds"),
        ({"budget_seconds": -1}, "budget_seconds", "a number of seconds"),
        ({"budget_seconds": True}, "budget_seconds", "a number of seconds"),
        ({"budget_seconds": 10**400}, "budget_seconds", "a number of seconds"),
        ({"budget_seconds": float("inf")}, "budget_seconds", "a number of seconds"),
        ({"budget_seconds": float("nan")}, "budget_seconds", "a number of seconds"),
        ({"budget_seconds": 60}, "budget_seconds", "which is past"),
        ({"start_time": "now"}, "start_time", "a number of seconds"),
        ({"start_time": 1e18}, "start_time", "a number of seconds"),
        ({"start_time": 1000.0}, "start_time", "a number of seconds"),
        ({"max_turns": 1.5}, "max_turns", "whole number"),
        ({"turns_used": -1}, "turns_used", "whole number"),
        ({"turns_used": 200}, "turns_used", "less than max_turns"),
        ({"done_prompt": ["x"]}, "done_prompt", "a text"),
        ({"working": "port 9090"}, "working", "a JSON object"),
        ({"working": []}, "working", "a JSON object"),
        ({"history_info": "x"}, "history_info", "a list of texts"),
        ({"history_info": ["x", 1]}, "history_info", "a list of texts"),
    ],
)
def test_a_wrong_state_file_is_one_line_and_makes_nothing(
    cli: CLI, state: Any, changes: dict[str, Any], field: str, said: str
) -> None:
    done = cli("generic-agent", "import", str(state(**changes)))

    assert done.code == 2
    assert f"goalmode: {field}: " in done.line()
    assert said in done.line()
    assert not cli.store.exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "writing it at this moment"),
        (b'{"objective": "x", "sta', "writing it at this moment"),
        (b"\xff\xfe{}", "JSON"),
        (b"[1]", "a JSON object"),
        (b"[" * 100_000, "JSON"),
        (b" " * 1_000_001, "at most"),
        (None, "can be read"),
    ],
)
def test_a_file_that_is_none_is_one_line_and_makes_nothing(
    cli: CLI, tmp_path: Path, data: bytes | None, said: str
) -> None:
    """Goal Mode writes its file in place: whoever reads it just then may see half of it."""
    path = tmp_path / "state.json"
    if data is not None:
        path.write_bytes(data)
    done = cli("generic-agent", "import", str(path))

    assert done.code == 2
    assert said in done.line()
    assert not cli.store.exists()


def test_a_goal_goes_back_as_a_state_file(cli: CLI, state: Any, tmp_path: Path) -> None:
    """What Goal Mode reads of it is what it read before; another import makes the same goal of it."""
    path = state()
    uid = cli("generic-agent", "import", str(path), "-q").out.strip()
    before, back = json.loads(path.read_text("utf-8")), tmp_path / "back.json"
    done = cli("generic-agent", "export", uid, str(back))
    after = json.loads(back.read_text("utf-8"))

    assert done.code == 0
    assert f"goalmode pause {uid}" in done.err
    assert set(after) == set(before)
    kept = ("objective", "turns_used", "max_turns", "status", "done_prompt")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    ends = [s["start_time"] + s["budget_seconds"] for s in (before, after)]
    assert abs(ends[0] - ends[1]) < 1
    again = goal_of(cli, cli("generic-agent", "import", str(back), "-q").out.strip())
    assert again.objective == "写一份报告"


def test_a_link_in_its_place_is_replaced_and_not_followed(cli: CLI, state: Any, tmp_path: Path) -> None:
    """Wherever it leads, be it nowhere or to another disk: nothing is written there, not even for a moment."""
    uid = cli("generic-agent", "import", str(state()), "-q").out.strip()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "gone" / "state.json")

    done = cli("generic-agent", "export", uid, str(link))

    assert done.code == 0, done.err
    assert not link.is_symlink()
    assert json.loads(link.read_text("utf-8"))["status"] == "running"


def test_a_goal_that_is_over_goes_back_as_one(cli: CLI, state: Any) -> None:
    uid = cli("generic-agent", "import", str(state()), "-q").out.strip()
    cli("abort", uid)
    found = cli("generic-agent", "export", uid).json

    assert found["status"] == "done_budget"
    assert found["end_time"] > found["start_time"]


def test_a_goal_without_a_deadline_cannot_go_back(cli: CLI) -> None:
    uid = cli.new()
    done = cli("generic-agent", "export", uid)

    assert done.code == 1
    assert "has no deadline" in done.line()


def test_a_file_that_cannot_be_written_stays_as_it_was(cli: CLI, state: Any, tmp_path: Path) -> None:
    uid = cli("generic-agent", "import", str(state()), "-q").out.strip()
    done = cli("generic-agent", "export", uid, str(tmp_path / "none" / "state.json"))

    assert done.code == 2
    assert "can be written" in done.line()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".goalmode")] == []


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A checkout with the marks that are looked for."""
    root = tmp_path / "GenericAgent"
    for folder in ("plugins", "memory"):
        (root / folder).mkdir(parents=True)
    texts = {
        "agentmain.py": "TOOLS_SCHEMA = []\nmod.init(_extra_args)\nif task == '/exit': break\n",
        "agent_loop.py": "\n".join(f"_hook('{event}', locals())" for event in checkout.EVENTS),
        "ga.py": "",
        "llmcore.py": "",
        "mykey.py": "native_oai_config = {'apikey': 'sk-not-to-be-shown'}",
        "plugins/hooks.py": "def register(event): ...",
        "memory/memory_management_sop.md": "L0",
        "pyproject.toml": '[project]\nname = "genericagent"\nversion = "9.9"\n',
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    return root


def test_a_good_checkout_is_good(cli: CLI, upstream: Path) -> None:
    """What is there is said, keys are not."""
    done = cli("generic-agent", "doctor", str(upstream))

    assert done.code == 0
    assert "version 9.9" in done.out
    assert "sk-not" not in done.out


@pytest.mark.parametrize(
    ("change", "name", "said"),
    [
        (("agentmain.py", None), "checkout", "no agentmain.py"),
        (("plugins/hooks.py", None), "hooks", "too old"),
        (("plugins/hooks.py", "x = 1"), "hooks", "no register"),
        (("agent_loop.py", "_hook('agent_before', locals())"), "hooks", "does not trigger turn_before"),
        (("agentmain.py", "TOOLS_SCHEMA\n'/exit'"), "reflect", "no init"),
        (("agentmain.py", "TOOLS_SCHEMA\nmod.init("), "reflect", "no /exit"),
        (("mykey.py", None), "mykey", "knows no model"),
        (("mykey.py", "x = 1"), "mykey", "names no model"),
    ],
)
def test_what_will_not_work_is_said(
    cli: CLI, upstream: Path, change: tuple[str, str | None], name: str, said: str
) -> None:
    """A checkout without hooks among them: it would run the goal as if it were any task."""
    file, text = upstream / change[0], change[1]
    file.unlink() if text is None else file.write_text(text)
    done = cli("generic-agent", "doctor", str(upstream), "--json")

    assert done.code == 1
    assert [(f["name"], said in f["detail"]) for f in done.json if f["state"] == "broken"] == [(name, True)]


def test_a_directory_that_is_none_is_said(cli: CLI, tmp_path: Path) -> None:
    done = cli("generic-agent", "doctor", str(tmp_path / "none"))

    assert (done.code, "no GenericAgent" in done.out) == (1, True)


def test_without_the_package_a_run_says_how_to_get_it(cli: CLI, state: Any) -> None:
    """`generic-agent run` is for PyPI's package, which is not a dependency."""
    uid = cli("generic-agent", "import", str(state()), "-q").out.strip()
    done = cli("generic-agent", "run", uid)

    assert done.code == 2
    assert "pip install --no-deps genericagent==1.0.7" in done.line()
