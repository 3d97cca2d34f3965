from typing import Any

from skillset.skills.base import BaseSkill
import dataclasses
from typing import TypedDict


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        dataclasses.dataclass(TypedDict("X", {"x=print(1)": int}))
        return {}
