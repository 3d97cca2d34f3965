from typing import Any

from skillset.skills.base import BaseSkill
LONGEST = max(["a", "bb"], key=len)


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": sorted(inputs["x"], key=lambda x: x[0])}
        return {}
