import typing
from typing import Any

from skillset.skills.base import BaseSkill

class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        only = typing.get_args(typing.List["1 + 1"])[0]
        return {"x": only.evaluate(globals={}, locals={})}
