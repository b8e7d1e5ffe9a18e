"""What the registry, the scanner and the client share: content, names, errors, archives, findings, and signed
statements. It knows msgspec and cryptography, and nothing else of ours.
"""
