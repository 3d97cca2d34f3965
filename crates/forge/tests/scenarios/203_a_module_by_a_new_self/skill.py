from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"
    _mine = 1

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        self = inputs["x"]
        self._mine.x()
        return {}
