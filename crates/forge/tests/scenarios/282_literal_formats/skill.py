from typing import Any

from skillset.skills.base import BaseSkill
TEMPLATE = "{a}"


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        x = "{:>3} {name!r} {0}".format(1, name="b")
        y = TEMPLATE.format(a=1)
        z = list(map("{}".format, [1]))
        return {}
