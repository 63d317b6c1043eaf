"""What a gateway does with each call, over all locations."""
