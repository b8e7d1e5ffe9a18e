"""Renders content for pages: avatars, coloured code, Markdown, differences."""
