from typing import Any

from skillset.skills.base import BaseSkill


class DemoSkill(BaseSkill):
    name = "demo"
    description = "Does something small"
    side_effect_class = "READ_ONLY"
    _LIMIT = 3

    def _help(self, x: int) -> int:
        return x + self._LIMIT

    @staticmethod
    def _plain(text: str) -> str:
        return text.strip()

    @property
    def _shown(self) -> str:
        return "x"

    @classmethod
    def _made(cls) -> int:
        return cls._LIMIT

    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        self._count = 1
        return {"x": self._help(self._count), "y": self._LIMIT, "z": DemoSkill._plain("x"), "w": self._shown}
        return {}
