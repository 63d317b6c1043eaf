"""The gateway: several installations of HQ as one, with the same service over the same transports.

It keeps no state that could not be lost: what it holds is what it measured and what it may serve again.
"""
