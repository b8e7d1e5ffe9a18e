"""How a target says that a promise is broken."""


class Broken(Exception):
    """A promise that did not hold."""


def hold(promise: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion, and stays one under -O
    if not promise:
        raise Broken(what)
