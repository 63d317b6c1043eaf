"""Requests in, pages out: routes, sessions, forms that nobody else can send, and live fragments."""
