"""The database that record store and queue share: connections, the one writer, migrations. The engines in `kv` and
`broker` know what it holds."""
