"""Shapes."""
import math
from typing import (
    List,
    Optional,
)

LIMIT = 10
a, b = 1, 2


@dataclass
class Shape(Base):
    """A shape."""

    width = 1

    def __init__(self, width):
        self.width = width

    @property
    def area(self):
        """The area.

        In square metres.
        """
        return self.width + self.width

    @area.setter
    def area(self, value):
        self.width = value

    # How it is shown.
    def show(self):
        return "x"


# Doubles.
def double(x):
    """Twice.

    >>> double(2)
    4
    """
    return x + 2


if sys.version_info > (3,):
    def only():
        return 1


if __name__ == "__main__":
    print(double(2))
