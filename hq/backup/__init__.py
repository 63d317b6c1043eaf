"""Backups of what an installation knows, and their restoration: `hq backup`, `hq restore`."""
