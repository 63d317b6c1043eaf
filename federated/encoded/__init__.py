"""Answers that stay encoded: cut apart, merged, and glued together as bytes."""
