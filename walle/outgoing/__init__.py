"""Calls to other systems: to destinations that the configuration lists, bounded in time and size."""
