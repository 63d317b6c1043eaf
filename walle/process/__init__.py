"""Wall-E as a process: its reconcilers, and how it is started and stopped."""
