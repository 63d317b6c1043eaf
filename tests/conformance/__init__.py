"""One suite for discovery clients in any language: a scripted HQ plays scenarios, a client under test follows.

docs/client-conformance.md says how to hold a client to it. This is no test of HQ itself.
"""
