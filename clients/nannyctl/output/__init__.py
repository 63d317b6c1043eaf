"""The output for people and programs."""
