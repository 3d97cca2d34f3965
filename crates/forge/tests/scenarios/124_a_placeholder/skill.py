from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = f"{1}"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
