"""A folder as the plugin that clients make of it: its manifests, its parts, and what starts without being asked."""
