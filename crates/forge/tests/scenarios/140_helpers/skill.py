from typing import Any

from skillset.skills.base import BaseSkill
LIMIT = 10


def helper(x: int = 3) -> int:
    return x * LIMIT


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": helper()}
