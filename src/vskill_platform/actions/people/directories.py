"""What a company's directory does to accounts by SCIM: it makes and locks them, and says which groups they are in.

The directory of an issuer speaks about that issuer's subjects only: its `externalId` is the subject that somebody signs
in as. So it finds or makes the account of an identity, and never moves an identity from one account to another.
`web.clients.scim` speaks the protocol.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from vskill_core.errors import InvalidInput, NotFound, NotPermitted, NotSignedIn, PlatformError
from vskill_platform.actions.action import Services
from vskill_platform.actions.people.accounts import DecideUser, end_access, keeping_an_admin
from vskill_platform.domain import keys
from vskill_platform.domain.people import scim
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.setting_issuers import MOST_GROUPS, Issuer
from vskill_platform.store.people import accounts, directories, identities
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.people.refusals import note_refusal

#: From a resource's attributes to what they become.
Alter = Callable[[dict[str, Any]], dict[str, Any]]
#: How many resources there are, and those on a page.
Listed = tuple[int, list[dict[str, Any]]]

_WHY = "said by the directory"


async def admit_directory(services: Services, name: str, secret: str) -> Issuer:
    """The issuer whose directory sends this token; NotSignedIn does not say what is wrong."""
    error = NotSignedIn("The SCIM token is not valid.", fix="ask an admin of the registry for one")
    for issuer in services.settings.issuers:
        if issuer.name == name:
            if await directories.is_scim_token(issuer.issuer, secret):
                return issuer
            await note_refusal("scim", error.message, target=name)
    raise error


def _by(issuer: Issuer) -> str:
    return f"scim:{issuer.name}"


# Reading. A resource is its attributes, and when it was created.


async def list_users(issuer: Issuer, wanted: scim.ScimFilter | None, start: int, most: int) -> Listed:
    if wanted is None:
        total, names = await directories.list_sent_names(issuer.issuer, start, most)
        return total, await _read_resources(issuer, names)
    found = await _read_resources(issuer, await _find_by(issuer, wanted))
    fitting = [one for one in found if wanted.fits(one)]
    return len(fitting), fitting[start : start + most]


async def _read_resources(issuer: Issuer, names: Iterable[str]) -> list[dict[str, Any]]:
    return [
        _user_resource(issuer, *one) for one in (await directories.read_sent(issuer.issuer, names)).values()
    ]


async def _find_by(issuer: Issuer, wanted: scim.ScimFilter) -> list[str]:
    found: str | None = wanted.value
    if wanted.attribute == "userName":
        found, _ = await directories.find_by_name(issuer.issuer, wanted.value)
    elif wanted.attribute == "externalId":
        found, _ = await identities.find_account(accounts.LinkedIdentity(wanted.value, "", 0, issuer.issuer))
    return [found] if found else []


async def list_groups(issuer: Issuer, wanted: scim.ScimFilter | None, start: int, most: int) -> Listed:
    groups = [_group_resource(one) for one in await directories.list_sent_groups(issuer.issuer)]
    fitting = [one for one in groups if wanted is None or wanted.fits(one)]
    return len(fitting), fitting[start : start + most]


async def read_user_sent(issuer: Issuer, name: str) -> dict[str, Any]:
    return _user_resource(issuer, *await _get_user(issuer, name))


async def read_group_sent(issuer: Issuer, identifier: str) -> dict[str, Any]:
    return _group_resource(await _get_group(issuer, identifier))


def _user_resource(issuer: Issuer, user: accounts.User, entry: accounts.DirectoryEntry) -> dict[str, Any]:
    groups = [{"value": directories.group_id(issuer.issuer, one)} for one in entry.groups or ()]
    return {"id": user.name, **scim.document_of(entry.user), "groups": groups, "created": user.created_at}


def _group_resource(group: directories.SentGroup) -> dict[str, Any]:
    known = scim.ScimGroup(group.display_name, group.external_id)
    return {"id": group.id, **scim.document_of(known), "created": group.created_at}


# People.


async def _get_user(issuer: Issuer, name: str) -> tuple[accounts.User, accounts.DirectoryEntry]:
    user, _ = await accounts.read_user(name)
    found = directories.sent_identity(user, issuer.issuer, await directories.speaks_since(issuer.issuer))
    if user is None or found is None:
        raise NotFound(f"There is no user {name[:80]!r}.")
    return user, found[1]


async def make_user(services: Services, issuer: Issuer, sent: scim.ScimUser) -> str:
    """The account of the identity that the directory names: a new one, or the one that signs in as it."""
    subject = sent.external_id
    if not identities.is_subject(subject):
        raise scim.refuse(
            "externalId is no subject.", "invalidValue", "send printable characters", "externalId"
        )
    await _require_free(issuer, sent.user_name)
    link = accounts.LinkedIdentity(
        subject, identities.login_of(sent.user_name), services.kv.now(), issuer.issuer
    )
    known_as, _ = await identities.find_account(link)
    if known_as == "":
        fix = "link it to an account in the registry, by signing in with it there"
        raise scim.refuse("This externalId was unlinked from its account.", "invalidValue", fix, "externalId")
    name = known_as or await _make_account(issuer, link)

    async def decide(user: accounts.User) -> accounts.UserChange:
        known, _ = accounts.split_identities(user, issuer.issuer, subject)
        if known is None or (known.directory is not None and not known.directory.deleted):
            raise _taken("externalId")
        since = await directories.speaks_since(issuer.issuer)
        entry = known.directory or accounts.DirectoryEntry(sent, since, made=known_as is None)
        entry = msgspec.structs.replace(entry, user=sent, since=since, deleted=False)
        return await _plan(services, issuer, user, known, entry)

    details = {"userName": sent.user_name, "externalId": subject}
    await _change(issuer, name, decide, "scim user created", details)
    return name


async def _make_account(issuer: Issuer, link: accounts.LinkedIdentity) -> str:
    suffix = identities.hash_identity(link.issuer, link.id)[:8]
    arrival = identities.Arrival(link, issuer.shown, suffix, f"{issuer.name}-{suffix}", is_admitted=True)
    for name in identities.names_for(arrival):

        async def bring(name: str = name) -> tuple[Operation, ...]:
            return (identities.put_identity(link, name),)

        with suppress(accounts.NameTaken):
            made = await accounts.create_user(
                name, accounts.Role.AUTHOR, by=_by(issuer), reason=_WHY, identity=link, operations=bring
            )
            return made.name
    raise _taken("userName")


async def alter_user(services: Services, issuer: Issuer, name: str, alter: Alter) -> None:
    before = scim.document_of((await _get_user(issuer, name))[1].user)
    after = scim.document_of(scim.convert(alter(before), scim.ScimUser))
    if after["userName"].casefold() != before["userName"].casefold():
        await _require_free(issuer, after["userName"])
    details = {
        field: str(after.get(field)) for field in after | before if after.get(field) != before.get(field)
    }

    async def decide(user: accounts.User) -> accounts.UserChange:
        link, entry = await _sent(user, issuer)
        sent = scim.convert(alter(scim.document_of(entry.user)), scim.ScimUser)
        if sent.external_id != link.id:
            raise scim.refuse("externalId never changes.", "mutability", "make another user", "externalId")
        return await _plan(services, issuer, user, link, msgspec.structs.replace(entry, user=sent))

    await _change(issuer, name, decide, "scim user changed", details)


async def delete_user(services: Services, issuer: Issuer, name: str) -> None:
    """Lock the account and forget what the directory says about it. Its name, skills and identity stay its own."""
    await _get_user(issuer, name)

    async def decide(user: accounts.User) -> accounts.UserChange:
        link, entry = await _sent(user, issuer)
        gone = msgspec.structs.replace(entry.user, user_name=user.name, active=False, display_name=None)
        forgotten = msgspec.structs.replace(entry, user=gone, deleted=True, groups=())
        return await _plan(services, issuer, user, link, forgotten)

    await _change(issuer, name, decide, "scim user deleted", {})


async def _require_free(issuer: Issuer, user_name: str) -> None:
    """Directories compare user names without case."""
    if (await directories.find_by_name(issuer.issuer, user_name))[0] is not None:
        raise _taken("userName")


async def _change(
    issuer: Issuer, name: str, decide: DecideUser, verb: str, details: Mapping[str, str]
) -> None:
    await accounts.change_user(name, decide, action=verb, by=_by(issuer), reason=_WHY, details=details)


async def _plan(
    services: Services,
    issuer: Issuer,
    user: accounts.User,
    link: accounts.LinkedIdentity,
    entry: accounts.DirectoryEntry,
) -> accounts.UserChange:
    """The account's record with what the directory says about the person now, and what follows from it. An account that
    an admin disabled stays so; one that an admin enabled is locked when the directory says again that it is over."""
    is_admins = user.disabled and not _is_locked(user)
    entry = msgspec.structs.replace(entry, locked=not entry.user.active and not is_admins)
    if link.directory == entry:
        return accounts.UserChange(user)
    if user.role is accounts.Role.ADMIN and user.password is not None and not entry.made:
        message = f"{user.name} is an admin with a password, whom no directory changes."
        raise NotPermitted(message, account=user.name, fix="change it in the registry")
    changed = _with_entry(user, link, entry)
    changed = msgspec.structs.replace(changed, disabled=is_admins or _is_locked(changed))
    if changed.disabled and not user.disabled:
        changed = end_access(changed, services.kv.now())
    change = await keeping_an_admin(user, changed)
    found_by = await _plan_name(issuer, user.name, link, entry)
    return accounts.UserChange(change.record, (*change.operations, *found_by))


async def _plan_name(
    issuer: Issuer, account: str, link: accounts.LinkedIdentity, entry: accounts.DirectoryEntry
) -> list[Operation]:
    if entry.deleted:
        return directories.forget_sent(account, link)
    known, version = await directories.find_by_name(issuer.issuer, entry.user.user_name)
    if known not in (None, account):
        raise _taken("userName")
    key, said = directories.name_key(issuer.issuer, entry.user.user_name), link.directory
    put = Put(key, msgspec.json.encode(identities.IdentityAccount(account)), version)
    before = key if said is None or said.deleted else directories.name_key(issuer.issuer, said.user.user_name)
    return [] if known and key == before else [put, *([Delete(before)] if before != key else [])]


def _with_entry(
    user: accounts.User, link: accounts.LinkedIdentity, entry: accounts.DirectoryEntry
) -> accounts.User:
    said = msgspec.structs.replace(link, directory=entry)
    links = tuple(said if one == link else one for one in user.identities)
    return msgspec.structs.replace(user, identities=links)


async def _sent(
    user: accounts.User, issuer: Issuer
) -> tuple[accounts.LinkedIdentity, accounts.DirectoryEntry]:
    found = directories.sent_identity(user, issuer.issuer, await directories.speaks_since(issuer.issuer))
    if found is None:
        raise NotFound(f"There is no user {user.name!r}.")
    return found


def _is_locked(user: accounts.User) -> bool:
    return any(one.directory is not None and one.directory.locked for one in user.identities)


def _taken(attribute: str) -> InvalidInput:
    return scim.refuse(f"Another one has this {attribute}.", "uniqueness", "change that one", attribute)


# Groups. A group's value in accounts, and in teams, is its `externalId`, or its first name if it has none: that is what
# the claims of a sign-in hold at Entra and at Okta.


async def _get_group(issuer: Issuer, identifier: str) -> directories.SentGroup:
    group, _ = await directories.read_group(issuer.issuer, identifier)
    if group is None:
        raise NotFound(f"There is no group {identifier[:80]!r}.")
    return group


async def list_members(issuer: Issuer, identifier: str) -> list[str]:
    sent = await directories.read_sent(issuer.issuer, await directories.list_member_names(identifier))
    groups = {
        name: [directories.group_id(issuer.issuer, one) for one in entry.groups or ()]
        for name, (_, entry) in sent.items()
    }
    return [name for name, among in groups.items() if identifier in among]


async def make_group(services: Services, issuer: Issuer, sent: scim.ScimGroup) -> str:
    value = sent.external_id or sent.display_name
    identifier = directories.group_id(issuer.issuer, value)
    made = directories.SentGroup(
        identifier, issuer.issuer, value, sent.display_name, sent.external_id, services.kv.now()
    )
    await _require_sent(issuer, {one.value for one in sent.members})

    async def decide() -> tuple[None, list[Operation]]:
        if (await directories.read_group(issuer.issuer, identifier))[0] is not None:
            raise _taken("displayName")
        return None, [_put_group(made, ABSENT)]

    await commit_audited(AuditNote("scim group created", value, _by(issuer), _WHY), decide)
    members = msgspec.to_builtins(sent.members)
    await alter_group(services, issuer, identifier, lambda known: known | {"members": members})
    return identifier


async def alter_group(
    _services: Services, issuer: Issuer, identifier: str, alter: Alter
) -> directories.SentGroup:
    """Change a group. Each account is a commit of its own: a request that broke off is sent again."""
    group = await _get_group(issuer, identifier)
    before = set(await list_members(issuer, identifier))
    known = scim.ScimGroup(group.display_name, group.external_id, tuple(map(scim.ScimMember, sorted(before))))
    sent = scim.convert(alter(scim.document_of(known)), scim.ScimGroup)
    if group.external_id not in (None, sent.external_id):
        raise scim.refuse("externalId never changes.", "mutability", "make another group", "externalId")
    after = {one.value for one in sent.members}
    await _require_sent(issuer, after - before)
    changed = msgspec.structs.replace(group, display_name=sent.display_name, external_id=sent.external_id)

    async def decide() -> tuple[None, list[Operation]]:
        _, version = await directories.read_group(issuer.issuer, identifier)
        return None, [] if changed == group else [_put_group(changed, version)]

    await commit_audited(AuditNote("scim group changed", group.group, _by(issuer), _WHY), decide)
    refused: PlatformError | None = None
    # One that is refused keeps nobody else in the group.
    for name in (*sorted(before - after), *sorted(after - before)):
        try:
            await _join_or_leave(issuer, group.group, name, joins=name in after)
        except (InvalidInput, NotFound) as error:
            refused = refused or error
    if refused is not None:
        raise refused
    return changed


async def delete_group(services: Services, issuer: Issuer, identifier: str) -> None:
    group = await alter_group(services, issuer, identifier, lambda known: known | {"members": []})

    async def decide() -> tuple[None, list[Operation]]:
        return None, [Delete(keys.scim_group(identifier))]

    await commit_audited(AuditNote("scim group deleted", group.group, _by(issuer), _WHY), decide)


def _put_group(group: directories.SentGroup, version: int) -> Put:
    return Put(keys.scim_group(group.id), msgspec.json.encode(group), version)


async def _require_sent(issuer: Issuer, names: set[str]) -> None:
    for name in names - (await directories.read_sent(issuer.issuer, names)).keys():
        raise scim.refuse(
            f"There is no user {name[:80]!r}.", "invalidValue", "make the user first", "members"
        )


async def _join_or_leave(issuer: Issuer, group: str, name: str, *, joins: bool) -> None:
    """Groups lock nobody, so those of admins with a password change, too."""

    async def decide(user: accounts.User) -> accounts.UserChange:
        link, entry = await _sent(user, issuer)
        others = tuple(one for one in entry.groups or () if one != group)
        groups = (*others, group) if joins else others
        if len(groups) > MOST_GROUPS:
            message = f"{name} is in {MOST_GROUPS} groups, which is the limit."
            raise scim.refuse(message, "tooMany", "send fewer groups", "members")
        changed = msgspec.structs.replace(entry, groups=groups)
        if changed == link.directory:
            return accounts.UserChange(user)
        key = keys.scim_member(directories.group_id(issuer.issuer, group), name)
        return accounts.UserChange(
            _with_entry(user, link, changed), (Put(key, b"{}") if joins else Delete(key),)
        )

    await _change(issuer, name, decide, f"scim group {'joined' if joins else 'left'}", {"group": group})
