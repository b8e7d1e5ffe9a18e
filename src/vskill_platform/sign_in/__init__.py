"""Where people sign in other than by a password: each provider proves who somebody is, `store.people.identities` finds
their account."""
