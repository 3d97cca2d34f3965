from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
