from typing import Any

from skillset.skills.base import BaseSkill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        return {}
