"""The calls of walle.v1: parsed requests in, answers out."""
