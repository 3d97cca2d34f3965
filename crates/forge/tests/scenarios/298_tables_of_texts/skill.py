from typing import Any

from skillset.skills.base import BaseSkill
import csv
import io


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(["a"])
        return {"x": out.getvalue()}
        return {}
