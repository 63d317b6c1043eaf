"""What a front does with each call, over all locations."""
