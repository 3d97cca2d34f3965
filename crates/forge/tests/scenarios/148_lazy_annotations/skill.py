from __future__ import annotations

from typing import Any

from skillset.skills.base import BaseSkill
def helper(x: list[int] | None = None) -> None:
    return None


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
