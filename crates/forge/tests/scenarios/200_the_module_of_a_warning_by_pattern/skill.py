from typing import Any

from skillset.skills.base import BaseSkill
import warnings


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        match warnings.catch_warnings():
            case object(_module=m):
                m.x()
        return {}
