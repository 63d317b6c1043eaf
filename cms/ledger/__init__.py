"""The decision: tasks, budgets and what HQ said, without I/O. Times come in as arguments, in seconds of one clock."""
