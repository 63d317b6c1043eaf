"""Filters that are asked for often, followed by watches and answered from memory."""
