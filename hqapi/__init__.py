"""Parts that every server of hq.v1 has besides `serving`: HQ, the federation gateway, and the host agent.

Rules of its calls, what its requests may list and are about, its page for Prometheus. It knows no server.
"""
