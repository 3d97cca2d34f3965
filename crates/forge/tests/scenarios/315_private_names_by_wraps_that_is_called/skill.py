import functools
import io
import types
from typing import Any

from skillset.skills.base import BaseSkill

class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        r = io.StringIO()
        functools.wraps(types.SimpleNamespace(_stream="modules"))(r)
        return {"x": 1}
