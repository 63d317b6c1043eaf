"""Planned work on many hosts: asked for, agreed on, done, given back. Pure."""
