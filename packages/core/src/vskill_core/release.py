"""The release that this is: one number for every package."""

__version__ = "0.3.0.dev0"


def release_numbers(release: str) -> tuple[int, ...]:
    """Major, minor and patch, to compare releases; what a build before a release adds does not count."""
    return tuple(map(int, release.split(".")[:3]))
