"""The calls of a gateway, over all locations."""
