from typing import Any

from skillset.skills.base import BaseSkill
from collections import namedtuple
Point = namedtuple("Point", "x y")


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        p = Point(1, 2)
        return {"x": p._asdict(), "y": p._replace(x=3).x}
        return {}
