"""How often each rule fired here, and how often reviewers agreed with it; and suppressed rules: the list, and the forms
that suppress a rule for one content and let it count again."""

from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.actions.verdicts.suppressions import SUPPRESS, SUPPRESSED, UNSUPPRESS, SuppressionChange
from vskill_platform.web.pages.acting import answer_page, form

LIST = "/admin/suppressions"


def told_suppressed(done: SuppressionChange, _: object) -> str:
    told = f"{done.suppression.rule} no longer counts for this content."
    return f"{told} It is being judged again." if done.new_runs else told


def told_unsuppressed(done: SuppressionChange, _: object) -> str:
    told = f"{done.suppression.rule} counts again."
    return f"{told} {', '.join(done.rescans)} is being judged again." if done.rescans else told


ENDPOINTS = (
    answer_page("/admin/rules", "rules.html", found=RULE_FIGURES),
    answer_page(LIST, "suppressions.html", ("after",), found=SUPPRESSED),
    form(f"{LIST}/add", SUPPRESS, told_suppressed, at=LIST),
    form(f"{LIST}/remove", UNSUPPRESS, told_unsuppressed, at=LIST),
)
