"""How long tests wait. A test waits for a condition; a time only keeps it from waiting for ever, so it is long enough for
a machine on which everything takes ten times as long."""

#: For anything that must happen; only a guard against hanging.
PATIENCE_S = 120.0
#: For calls that wait by themselves and must be woken: longer than anybody's patience, so that a wait that runs out is
#: never taken for a wake-up.
NEVER_MS = 600_000
