from typing import Any

from skillset.skills.base import BaseSkill
from pathlib import Path


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": Path(inputs["p"]).name.replace("a", "b").replace("c", "d", 1), "y": dict(inputs).copy()}
        return {}
