"""The one tree of errors that this project raises on purpose.

Everything else builds on it: the domain raises these, engines translate their drivers' errors into them, and the web
and the command line render them in one place each. Every class has a stable `code` that clients may compare, an HTTP
status, and a docstring that is also its default message.
"""

from typing import ClassVar


class PlatformError(Exception):
    """Something went wrong inside the platform."""

    #: stable, unique, lower case with underscores; clients may compare it
    code: ClassVar[str] = "platform_error"
    #: the HTTP status under which the web side shows it
    status: ClassVar[int] = 500
    #: its message may name files, servers and accounts: the log has it, and clients get the default one
    is_private: ClassVar[bool] = False

    message: str
    #: facts for logs and problem documents, each JSON-friendly
    details: dict[str, object]

    def __init__(self, message: str | None = None, **details: object) -> None:
        self.details = details
        self.message = self.default_message() if message is None else message
        super().__init__(self.message)

    def default_message(self) -> str:
        """The class's docstring on one line; a class whose details name the cause overrides this."""
        return " ".join((type(self).__doc__ or PlatformError.__doc__ or "").split())

    @property
    def public_message(self) -> str:
        """The message for clients."""
        return self.default_message() if self.is_private else self.message

    @property
    def in_words(self) -> str:
        """What is wrong and what to do about it, in one sentence."""
        fix, said = self.text("fix"), self.public_message
        return said if not fix or fix in said else f"{said.rstrip('.')}: {fix}."

    def text(self, name: str) -> str:
        """One of the details, such as `key` or `host`; empty where it is missing."""
        return "" if (value := self.details.get(name)) is None else str(value)


# Requests that cannot be served as they are.


class InvalidInput(PlatformError):
    """The input is not valid."""

    code = "invalid_input"
    status = 400

    @property
    def field(self) -> str:
        return self.text("field")

    @property
    def fix(self) -> str:
        return self.text("fix")


class LimitExceeded(PlatformError):
    """The content is larger than this platform accepts."""

    code = "limit_exceeded"
    status = 413


class LowerVersion(PlatformError):
    """The version in the front matter is lower than a version that is already published."""

    code = "lower_version"
    status = 409


class NotFound(PlatformError):
    """This does not exist on this registry."""

    code = "not_found"
    status = 404


class NotVerifiedYet(NotFound):
    """An upstream has this skill, and nothing of it was verified here yet."""

    code = "not_verified_yet"


class Ambiguous(PlatformError):
    """The name matches more than one skill; use the full name."""

    code = "ambiguous"
    status = 404


class Blocked(PlatformError):
    """This skill is on the blocklist."""

    code = "blocked"
    status = 403


class Withdrawn(PlatformError):
    """The owner has withdrawn this version."""

    code = "withdrawn"
    status = 410


class NotSignedIn(PlatformError):
    """Sign in, or send a valid token as `Authorization: Bearer vsk_…`."""

    code = "not_signed_in"
    status = 401


class LoginPending(PlatformError):
    """Nobody has typed the code of this machine yet."""

    code = "authorization_pending"
    status = 400


class RateLimited(PlatformError):
    """Too many requests of this kind; try again later."""

    code = "rate_limited"
    status = 429


class QuotaExceeded(PlatformError):
    """A quota of the namespace is used up; ask an admin of this registry for a larger one."""

    code = "quota_exceeded"
    status = 403


class CrossSite(PlatformError):
    """The form did not come from a page of this site, or that page is too old: reload it and send it again."""

    code = "cross_site"
    status = 403


class NotPermitted(PlatformError):
    """You are not allowed to do this."""

    code = "not_permitted"
    status = 403


# Somebody else was faster, or the record is in another state than the caller expected.


class TransitionError(PlatformError):
    """The submission cannot move from its state to that one."""

    code = "transition_not_allowed"
    status = 409


class Conflict(PlatformError):
    """The record was changed by somebody else since it was read."""

    code = "conflict"
    status = 409


class IdentityMismatch(PlatformError):
    """A skill from another repository or upload already has this name."""

    code = "identity_mismatch"
    status = 409


class VersionStatusError(PlatformError):
    """The status of the version does not allow this."""

    code = "version_status"
    status = 409


class ClaimLost(PlatformError):
    """The claim on this submission has expired or was taken by another worker."""

    code = "claim_lost"
    status = 409


class BudgetExceeded(PlatformError):
    """The work took longer than its time budget."""

    code = "budget_exceeded"
    status = 504


class JobFailed(PlatformError):
    """The scheduled job failed; the list of jobs shows its error."""

    code = "job_failed"


# The record store.


class StoreError(PlatformError):
    """The record store failed."""

    code = "store_error"
    is_private = True


class StoreUnavailable(StoreError):
    """The record store cannot be reached at the moment."""

    code = "store_unavailable"
    status = 503


class QueueUnavailable(StoreUnavailable):
    """The queue's server cannot be reached at the moment."""

    code = "queue_unavailable"


class StoreBusy(StoreUnavailable):
    """The record store is locked by another process."""

    code = "store_busy"


class StoreTimeout(StoreUnavailable):
    """The record store did not answer in time."""

    code = "store_timeout"


class StoreFull(StoreUnavailable):
    """The record store's disk is full."""

    code = "store_full"


class StoreReadOnly(StoreUnavailable):
    """The record store cannot be written: its file or file system is read-only."""

    code = "store_read_only"


class StoreReplaced(StoreUnavailable):
    """A file of the record store was deleted or replaced while this process had it open; restart the process."""

    code = "store_replaced"


class StoreCorrupt(StoreError):
    """Stored data does not match its checksum or its format."""

    code = "store_corrupt"


class SchemaUnknown(StoreError):
    """The store's schema version is not one that this release knows."""

    code = "schema_unknown"


class RecordMalformed(StoreError):
    """A stored record cannot be read."""

    code = "record_malformed"


class CursorGone(StoreError):
    """The position in the list of changes is too old or belongs to another store; start again from the records."""

    code = "cursor_gone"
    status = 410
    is_private = False


class UnindexedQuery(StoreError):
    """The query names a field that has no declared index."""

    code = "unindexed_query"


# What a process has or lacks.


class Unsupported(PlatformError):
    """The storage engine does not support this."""

    code = "unsupported"
    status = 501

    def default_message(self) -> str:
        engine, capability = self.text("engine"), self.text("capability")
        if not (engine and capability):
            return super().default_message()
        return f"The engine {engine!r} cannot do that: it lacks {capability!r}."


class NoEnvironment(PlatformError):
    """No worker environment is active."""

    code = "no_environment"


class Stopping(PlatformError):
    """This process is stopping; send the request again."""

    code = "stopping"
    status = 503


class InvalidSettings(PlatformError):
    """The settings are not valid."""

    code = "invalid_settings"


# The outside world: where skills come from and where their bytes are kept.


class SourceUnavailable(PlatformError):
    """The host of the repository cannot be reached at the moment."""

    code = "source_unavailable"
    status = 503


class Shortage(SourceUnavailable):
    """This machine has too few resources at the moment: memory, processor time, open files, processes or disk space."""

    code = "shortage"


class RegistryUnavailable(PlatformError):
    """The registry cannot be reached at the moment, or its answer cannot be read."""

    code = "registry_unavailable"
    status = 503


class BlobUnavailable(PlatformError):
    """The stored files cannot be read at the moment."""

    code = "blob_unavailable"
    status = 503
    is_private = True


class BlobFull(BlobUnavailable):
    """The disk that keeps the content is full."""

    code = "blob_full"


class ContentDamaged(BlobUnavailable):
    """The stored files are missing or damaged, so they are not handed out; the registry repairs them if it can."""

    code = "content_damaged"


class SourceGone(PlatformError):
    """The repository does not exist, or is not public."""

    code = "source_gone"
    status = 422


class NoSkillFound(PlatformError):
    """There is no SKILL.md at this address."""

    code = "no_skill_found"
    status = 422


class InvalidManifest(PlatformError):
    """The front matter of SKILL.md is not valid."""

    code = "invalid_manifest"
    status = 422


# Signed statements.


class AttestationInvalid(PlatformError):
    """The attestation is not genuine, or not about this content."""

    code = "attestation_invalid"
    status = 422
