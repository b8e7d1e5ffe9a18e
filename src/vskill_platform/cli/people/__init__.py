"""Commands of `people`: who is who, and who may read and write: accounts, namespaces, teams, tokens."""
