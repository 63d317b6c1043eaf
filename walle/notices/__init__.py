"""Telling people: by webhook and by mail, by severity."""
