from typing import Any

from skillset.skills.base import BaseSkill
from collections.abc import Iterator
from contextlib import contextmanager, suppress
@contextmanager
def here(x: str) -> Iterator[str]:
    yield x


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        with suppress(KeyError), here("x") as x:
            return {"x": x}
        return {}
