from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        if type(inputs) is dict or isinstance(inputs, type):
            raise TypeError(f"not {type(inputs)}: {type(inputs).__name__}")
        return {}
