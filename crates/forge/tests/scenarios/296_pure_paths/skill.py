from typing import Any

from skillset.skills.base import BaseSkill
import os
from pathlib import PurePath


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": str(PurePath("a") / "b"), "y": os.path.splitext("a.b")[1]}
        return {}
