from typing import Any

from skillset.skills.base import BaseSkill
from pathlib import Path


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with Path(inputs["p"]).open(encoding="utf-8") as file:
            return {"x": file.read()}
        return {}
