import functools
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"

    def __init__(self) -> None:
        super().__init__()
        object.__init__(self)
        self.parser = "linux"
        self.os = self.parser

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        def twice(function: Callable[[int], int]) -> Callable[[int], int]:
            @functools.wraps(function)
            def inner(number: int) -> int:
                return function(function(number))

            return inner

        return {"w": twice(abs)(1), "x": self.os + self.parser, "z": PurePath("a").name}
