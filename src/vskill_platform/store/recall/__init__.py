"""Records of `recall`: what must not be installed any more: the blocklist, withdrawals, revocations."""
