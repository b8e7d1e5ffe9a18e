"""Who published a version where a CI job did: what the token said that the job's forge had signed. It is written into
the attestation, so that `verify --publisher` needs nobody to ask."""

import msgspec

from vskill_core.identity import GITHUB_HOST


class Publisher(msgspec.Struct, frozen=True, kw_only=True):
    """A CI job; every field is empty where no job submitted."""

    #: Who signed the job's token, such as `https://token.actions.githubusercontent.com`.
    issuer: str = ""
    #: With its host, such as `github.com/acme/skills`.
    repository: str = ""
    #: The workflow file in that repository, such as `.github/workflows/publish.yml`.
    workflow: str = ""
    #: The branch or tag that it ran for, such as `refs/tags/v1.2.0`.
    ref: str = ""
    #: The commit that it ran for, which is the one that was verified.
    commit: str = ""
    #: The environment that the forge gave it; empty where it had none.
    environment: str = ""
    #: Address of the run at the forge.
    run: str = ""

    @property
    def actor(self) -> str:
        """How history and audit name it."""
        return f"ci:{self.repository}"

    def fits(self, wanted: str) -> bool:
        """Whether it is meant by `REPO[/WORKFLOW]`: the repository with its host, which GitHub's need not have, and the
        workflow file by its path or its name."""
        repository = self.repository.lower()
        names = {repository, repository.removeprefix(f"{GITHUB_HOST}/")}
        files = (self.workflow, self.workflow.rpartition("/")[2])
        asked = wanted.removeprefix("https://").rstrip("/")
        return asked.lower() in names or any(
            asked.endswith(f"/{file}") and asked[: -len(file) - 1].lower() in names for file in files if file
        )
