"""The bundled tasks' templates, one module a domain, and the steps that all of them share."""

from __future__ import annotations

from tbstudy_demo.cases import Ask, Say, Step


def ask(key: str) -> Ask:
    """The question that releases the private fact `key`."""
    return Ask(f"I need the {key} first.", f"What is your {key}?")


def done(text: str) -> Say:
    """The closing message after everything asked for was done."""
    return Say("Everything asked for is done.", f"{text} <DONE>")


def declined(text: str) -> Say:
    """The closing message after a refusal was recorded."""
    return Say("The request is declined.", f"{text} <DONE>")


#: A script that helps nobody: it apologises before it tried anything.
GIVES_UP: tuple[Step, ...] = (Say("I see no way to help.", "Sorry, I cannot help with this. <DONE>"),)
