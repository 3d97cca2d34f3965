from typing import Any

from skillset.skills.base import BaseSkill
import warnings


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"
    def helper(self) -> Any:
        self._mine = 1
        return self._mine

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        DemoSkill.helper(warnings.catch_warnings())
        return {}
