"""Event streams: live changes for everybody who watches."""
