"""Page families, one per file, and what they share: site, views, render, guard."""
