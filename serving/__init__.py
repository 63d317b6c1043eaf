"""How hq.v1 is served, whoever answers: the table of methods, gRPC and HTTP, the error tree, limits, time.

Used by `hq` and by `federated`, which may not know each other. Both transports stand on the same table (`calls/`).
"""
