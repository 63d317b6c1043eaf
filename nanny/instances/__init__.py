"""The states of single instances as people see them, from what agents report. Pure."""
