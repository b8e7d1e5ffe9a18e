"""The release that this is: one number for every package."""

__version__ = "0.3.0.dev0"
