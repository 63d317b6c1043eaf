"""Plans, and their progress. Decisions only: no I/O."""
