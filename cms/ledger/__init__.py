"""The decision: tasks, budgets and HQ's data, without I/O. Times come in as arguments, in seconds of one clock."""
