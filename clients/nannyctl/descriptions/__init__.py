"""Descriptions of services and the files they are read from: checked, and split by installation."""
