"""The database file that record store and queue share: connections, the one writer, migrations. What stands in
it is the business of the engines in `kv` and `broker`."""
