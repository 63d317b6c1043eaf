"""Wall-E as a process: what it drives, and how it is started and stopped."""
