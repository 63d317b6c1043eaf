"""Instances written by hand, in files."""
