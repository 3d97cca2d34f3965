from typing import Any

from skillset.skills.base import BaseSkill
from functools import partial, reduce
import operator


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": reduce(operator.add, [1, 2]), "y": sorted(inputs["x"], key=operator.itemgetter("a")), "z": partial(int, base=2)("1")}
        return {}
