"""The CMS API v1.0 to v1.4: plain HTTP and JSON, as spoken by host-healing automation."""
