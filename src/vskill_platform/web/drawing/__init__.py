"""From content to what a page shows: charts, pictures, coloured code, Markdown, differences."""
