"""Finds books by the words of their titles."""


def words(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(text.lower().split())


def search(query: str, books: list[dict]) -> list[dict]:
    """The books whose titles hold all words of the query, in the order of the list."""
    wanted = words(query)
    return [book for book in books if wanted <= words(book["title"])]
