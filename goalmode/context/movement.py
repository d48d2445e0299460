"""What a movement asks for: in the context that a wakeup begins with, and in the middle of a conversation.

The wording of a shipped movement is a template. What a user wrote in a workflow is data: shown, never rendered.
"""

from __future__ import annotations

from goalmode.context.escape import block
from goalmode.context.render import Prompts
from goalmode.domain.goal import Goal


def instruction(goal: Goal, prompts: Prompts, *, pending: bool) -> str:
    """The text of the section `instruction`: what to do now, in the movement that the goal is in."""
    return prompts.words(goal.settings.lang)(
        "instruction",
        movement=goal.movement,
        others=_others(goal),
        text=_text(goal, prompts, pending),
        until_budget=goal.settings.until_budget,
        bare=goal.bare,
    )


def entered(goal: Goal, prompts: Prompts, *, pending: bool) -> str:
    """The message that begins the movement that the goal is in, after others of the same conversation."""
    text = _text(goal, prompts, pending)
    return prompts.frame(
        "movement", goal.settings.lang, movement=goal.movement, others=_others(goal), text=text
    )


def _text(goal: Goal, prompts: Prompts, pending: bool) -> str:
    """Raises TemplateError: there is no template of the name that the workflow gives, or it is broken."""
    movement, lang = goal.current, goal.settings.lang
    if not movement.instruction_template:
        return prompts.words(lang)("users_words", text=block(movement.instruction))
    until_budget = goal.settings.until_budget
    name = f"movements/{movement.instruction_template}"
    return prompts.frame(name, lang, pending=pending, until_budget=until_budget, bare=goal.bare)


def _others(goal: Goal) -> tuple[str, ...]:
    return tuple(name for name in goal.settings.workflow.names if name != goal.movement)
