"""The services that a gateway publishes, and how certain it is of them."""
