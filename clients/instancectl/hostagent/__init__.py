"""The host agent: one process that carries everything between HQ and the supervisors of a node."""
