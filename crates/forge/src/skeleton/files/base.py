"""The base class of every skill of this package."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar


class BaseSkill(ABC):
    """One thing that can be done: named values go in, named values come out.

    A skill says what it is by three texts on its class. Crucible reads them from the file, without running it.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    side_effect_class: ClassVar[str]

    @abstractmethod
    def execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Do it, and return what came of it."""
