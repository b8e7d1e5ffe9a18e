"""The light client, `vskill-client`: find, install, verify and submit skills at a registry. It knows nothing of how a
registry works: what it asks and what it is answered stands in `wire`, and the registry's own actions take it from
there.

`vskill-platform` has the same commands. There they can also act on the registry of the machine itself (`destination`).
"""
