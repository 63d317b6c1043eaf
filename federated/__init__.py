"""The gateway: serves several installations of HQ as one, with the same API over the same transports.

It keeps no state that must not be lost: only measurements and cached answers.
"""
