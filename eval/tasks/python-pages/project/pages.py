"""Pages of a list."""


def paginate(items, size):
    """Return the items in pages of the given size."""
    if size < 1:
        raise ValueError("a page holds at least one item")
    items = list(items)
    count = len(items) // size
    return [items[page * size : (page + 1) * size] for page in range(count)]
