from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"x": int(inputs["x"])}
        except (KeyError, ValueError) as error:
            raise ValueError(f"{error}: {error.__class__.__name__}") from error
        return {}
