"""The CMS API v1.0 to v1.4: plain HTTP and JSON, as automata that heal hosts speak it."""
