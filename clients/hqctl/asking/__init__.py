"""Whom a command asks, with which credentials, for how long, and how it ends when that fails."""
