"""The life cycle of a service's snapshots: tables, and a pure step over them. No I/O, no clock."""
