"""What a process tells of itself: metrics, logs, traces."""
