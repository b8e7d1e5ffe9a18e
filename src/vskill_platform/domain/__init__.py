"""The rules of the registry, pure: no I/O, no clock, no settings. Everything else depends on this package."""
