"""Frequently requested filters, followed by watches and answered from memory."""
