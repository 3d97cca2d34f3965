"""Counts the words of a text."""

from typing import Any

from PACKAGE.skills.base import BaseSkill


class WordCountSkill(BaseSkill):
    """Counts what stands between spaces, tabs and line ends."""

    name = "word_count"
    description = "Counts the words of a text, parted by any white space."
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return how many words `text` has."""
        text = inputs["text"]
        if not isinstance(text, str):
            raise TypeError("`text` has to be a text")
        return {"count": len(text.split())}
