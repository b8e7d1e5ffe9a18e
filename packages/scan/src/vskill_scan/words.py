"""Lists of words, written as people read them: separated by spaces, over as many lines as it takes."""


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())
