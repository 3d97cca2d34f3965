"""A cache that drops what was not used for longest."""

from collections import OrderedDict


class Cache:
    """Keeps at most `size` values."""

    def __init__(self, size):
        self.size = size
        self._values = OrderedDict()

    def get(self, key, default=None):
        """Return the value of a key."""
        return self._values.get(key, default)

    def put(self, key, value):
        """Store a value under a key."""
        self._values[key] = value
        if len(self._values) > self.size:
            self._values.popitem(last=False)

    def __len__(self):
        return len(self._values)
