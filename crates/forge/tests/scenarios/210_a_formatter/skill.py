from typing import Any

from skillset.skills.base import BaseSkill
import string


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        string.Formatter().format("{0.__globals__}", self.execute)
        return {}
