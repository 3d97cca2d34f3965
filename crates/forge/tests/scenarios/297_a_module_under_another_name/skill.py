from typing import Any

from skillset.skills.base import BaseSkill
import datetime as dt
import json as j
from json import loads as load


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {"x": j.dumps({}), "y": load("1"), "z": dt.datetime.now(dt.timezone.utc).isoformat()}
        return {}
