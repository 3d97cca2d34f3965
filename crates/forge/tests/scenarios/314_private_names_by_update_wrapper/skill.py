import contextlib
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
        got: list[Any] = []
        r = contextlib.redirect_stdout(io.StringIO())
        functools.update_wrapper(r, types.SimpleNamespace(_stream="modules", _old_targets=got))
        return {"x": len(got)}
