"""Calls that may fail."""


def retry(call, attempts=3, errors=(OSError,)):
    """Call until it succeeds, at most `attempts` times, and return the result."""
    for _ in range(attempts):
        try:
            return call()
        except errors:
            continue
    return None
