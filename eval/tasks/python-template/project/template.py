"""Texts with values in them."""

import re

NAME = re.compile(r"\{(\w+)\}")


def render(text, values):
    """Return the text with each {name} replaced by its value."""
    return NAME.sub(lambda match: str(values.get(match.group(1), match.group(0))), text)
