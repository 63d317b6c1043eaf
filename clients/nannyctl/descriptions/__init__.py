"""Descriptions of services and the files they are read from: checked, and shared out among installations."""
