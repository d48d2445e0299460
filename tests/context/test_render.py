from pathlib import Path
from types import SimpleNamespace

import pytest

from goalmode.context.phrases import completion_phrases
from goalmode.context.rebuild import _SectionView
from goalmode.context.render import PROMPTS, Prompts, package_prompts, render_prompt
from goalmode.domain.exits import ExitReason
from goalmode.errors import TemplateError
from tests.context.golden import LANGS, check

FULL: dict[str, dict[str, object]] = {
    "recovery": {"attempt": 1, "of": 2, "pending": ("W3", "W4"), "missing": ("out/report.md",)},
    "nudge": {"pending": ("W3",), "missing": ("out/report.md",)},
    "truncated": {"calls": 2},
    "malformed": {"detail": "the arguments end in the middle"},
    "rejected": {"missing": ("out/report.md is missing", "check R1 exited 1:\n2 failed")},
    "not_blocked": {"obstacle": "no access to the server", "met": 1, "needed": 3},
    "raise_bar": {},
    "repeated": {"calls": ("shell: make", "read_file: log.txt\nline 2"), "count": 5, "ends_at": 10},
    "wrap_up": {"kind": "tokens", "limit": 4000, "used": 3100},
    "handoff": {"max_turns": 180},
    "checkpoint_request": {},
    "settlement": {
        "memories": (("M7", "environment", "port 8080\nsince May"), ("M9", "preference", "metric units")),
        "left_out": 2,
        "closing": True,
        "nothing": True,
    },
    "note": {
        "entries": (
            ("note", "Use metres.\nNever feet.", ""),
            ("note", "Only 2029.", "2028 and 2029."),
            ("withdrawn", "Ask me first.", ""),
            ("answer", "Cuxhaven", "Q1: Which station?"),
            ("default", "blue", "Q2: Which colour?"),
        ),
        "left_out": 2,
    },
    "servers_missing": {"entries": ("MCP server git: ended (exit code 1)", "MCP server tracker: not set")},
}
MINIMAL: dict[str, dict[str, object]] = {
    **FULL,
    "recovery": {},
    "nudge": {},
    "truncated": {},
    "raise_bar": {"checked": False},
    "repeated": {"calls": ("list_files",), "count": 5, "ends_at": 10},
    "malformed": {},
    "note": {"entries": (("answer", "Go on.", ""),)},
    "settlement": {},
    "wrap_up": {"kind": "deadline", "limit": "2026-03-01T12:00:00+00:00", "used": 3540.0},
}


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", PROMPTS)
def test_prompts_read_as_agreed(name: str, lang: str) -> None:
    """Every prompt, with all its values and with as few as it can have, is the one in the golden files."""
    for kind, values in (("full", FULL[name]), ("minimal", MINIMAL[name])):
        check(f"{name}.{kind}.{lang}.txt", render_prompt(name, lang, **values))


@pytest.mark.parametrize("lang", LANGS)
def test_our_own_wording_holds_no_closing_phrase(lang: str) -> None:
    """No template says by itself what we withhold from models, whatever the wakeup ended for."""
    words = package_prompts().words(lang)
    told = [render_prompt(name, lang, **values) for name, values in FULL.items()]
    told += [
        words("ending", wakeup=1, reason=reason, turns=2, detail="", interrupted=True)
        for reason in ExitReason
    ]
    for until_budget in (False, True):
        tools = ("update_working_checkpoint", "verify", "complete", "wait")
        told.append(package_prompts().frame("system", lang, tools=tools, until_budget=until_budget))
    sources = Path(__file__).parents[2].joinpath("templates", lang).rglob("*.j2")
    told += [source.read_text("utf-8") for source in sources]

    assert [text for text in told if completion_phrases(text)] == []


def test_languages_have_the_same_files() -> None:
    """English and Chinese have the same templates, and each prompt has one."""
    root = Path(__file__).parents[2] / "templates"
    english, chinese = (
        {str(p.relative_to(root / lang)) for p in (root / lang).rglob("*.j2")} for lang in LANGS
    )

    assert english == chinese
    assert {f"{name}.j2" for name in PROMPTS} <= english


def test_values_are_data() -> None:
    """What looks like a template, a section's tag or a terminal escape is shown, not obeyed (B71, B73)."""
    told = render_prompt("rejected", "en", missing=("{{ 7*7 }} {% raw %}", "a\n</objective>\x1b[2J"))

    assert "- {{ 7*7 }} {% raw %}\n- a\n    &lt;/objective>\\x1b[2J\n" in told


def test_a_prompt_has_a_closed_set_of_values() -> None:
    """A value that a prompt does not have, or one it lacks, is the caller's error."""
    with pytest.raises(TypeError, match=r"rejected: unknown values \['goal'\], lacking \['missing'\]"):
        render_prompt("rejected", "en", goal="x")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("fine\n\n{{ secret }}\n", r"en/nudge\.j2, line 3: 'secret' is undefined"),
        ("fine\n{% if %}\n", r"en/nudge\.j2, line 2: Expected an expression"),
        ("{{ pending.append }}{{ missing.nothing }}", r"en/nudge\.j2, line 1: .*has no attribute"),
        ("{{ ().__class__.__mro__ }}", r"en/nudge\.j2, line 1: access to attribute '__class__'"),
        ("{{ 1 // 0 }}", r"en/nudge\.j2, line 1: .*zero"),
    ],
    ids=["unknown variable", "syntax", "unknown attribute", "unsafe", "arithmetic"],
)
def test_a_broken_template_is_named_with_file_and_line(tmp_path: Path, source: str, told: str) -> None:
    """A user's own template that is broken or asks for too much is one clear error."""
    tmp_path.joinpath("en").mkdir()
    tmp_path.joinpath("en", "nudge.j2").write_text(source, encoding="utf-8")

    with pytest.raises(TemplateError, match=told):
        Prompts(tmp_path).prompt("nudge", "en")


def test_a_users_template_replaces_the_packages_own(tmp_path: Path) -> None:
    """A file in the override directory wins, the rest comes from the package."""
    tmp_path.joinpath("en").mkdir()
    tmp_path.joinpath("en", "nudge.j2").write_text("Go on: {{ pending|join('+') }}", encoding="utf-8")
    prompts = Prompts(tmp_path)

    assert prompts.prompt("nudge", "en", pending=("W1", "W2")) == "Go on: W1+W2"
    assert prompts.prompt("handoff", "en", max_turns=3) == render_prompt("handoff", "en", max_turns=3)


def test_an_unknown_language_or_macro_is_a_template_error() -> None:
    """What is not there is named."""
    with pytest.raises(TemplateError, match=r"fr/nudge\.j2"):
        render_prompt("nudge", "fr")
    with pytest.raises(TemplateError, match="no macro 'nothing'"):
        package_prompts().words("en")("nothing")


def test_sections_are_remembered_by_all_that_they_show() -> None:
    """A short section that is rendered again is the same text; one that differs in anything is another."""
    prompts = package_prompts()
    views = [
        SimpleNamespace(name="obstacles", items=items, left_out=left_out, withheld=withheld)
        for items in ((), ("- O1",))
        for left_out in (0, 2)
        for withheld in (0, 1)
    ]

    for lang in LANGS:
        for view in views:
            hashed = _SectionView(**vars(view))
            again = [prompts.remembered("section", lang, section=hashed) for _ in range(2)]
            assert again == [prompts.frame("section", lang, section=view)] * 2
