import functools
import io
import types
from collections.abc import Callable
from typing import Any

from skillset.skills.base import BaseSkill

class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        room = io.StringIO()
        
        def gives(_function: Callable[[], None]) -> Any:
            return room
        
        @functools.wraps(types.SimpleNamespace(_stream="modules"))
        @gives
        def inner() -> None:
            return None
        
        return {"x": repr(inner)}
