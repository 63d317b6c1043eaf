"""All instances in memory: entries, indexes, joined lists, the history of changes, and what watches receive."""
