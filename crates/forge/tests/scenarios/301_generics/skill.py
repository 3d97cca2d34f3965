from typing import Any

from skillset.skills.base import BaseSkill
from collections.abc import Sequence
from typing import TypeVar
T = TypeVar("T")


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        def first(xs: Sequence[T], kind: type[T] | None = None) -> T | None:
            return xs[0] if xs else None
        return {"x": first([1])}
        return {}
