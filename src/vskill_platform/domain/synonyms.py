"""Words that people use for the same thing when they look for a skill. Each line is a group: a query for one of its
words finds the others too, behind what has the word itself.

Words stand as search cuts them: lower case, without accents and hyphens. Other forms of a word need no entry, stems see
to them. A word belongs to one group.
"""

from collections.abc import Mapping

from vskill_platform.domain.stems import stem

GROUPS = """
a11y accessibility wcag
accelerate faster performance speed optimise
ai llm gpt
analyse analysis analytics
aws amazon
bash shell zsh
browser chrome firefox
bug defect
calendar appointment
chart graph plot visualisation
cli terminal console
colour color
container docker podman
credential password secret
csv tsv
cv resume curriculum
database db
describe description
devops sre
diagram flowchart
docs documentation
docx word
e2e playwright cypress selenium
email mail
embedding vector
error exception
excel spreadsheet xlsx xls
gcp google
golang go
i18n internationalisation localisation l10n translate
image picture photo photograph
invoice billing
javascript js ecmascript
k8s kubernetes kubectl
licence license
logging log
login signin oauth sso authentication
markdown md
maths mathematics
meeting standup
notebook jupyter
pdf acrobat
postgres postgresql psql pgsql
pptx powerpoint presentation slide deck keynote
pr pull mr
privacy gdpr
python py
quiz exam
react reactjs
recording transcript transcribe
refactor restructure
scrape crawl
secure security
test qa
typescript ts
video film movie clip
vue vuejs
webhook callback
website webpage
"""


_STEMS = tuple(tuple(map(stem, group.split())) for group in GROUPS.split("\n"))
#: By the stem of a word: the stems of the others in its group.
_OTHERS: Mapping[str, tuple[str, ...]] = {
    one: tuple(other for other in stems if other != one) for stems in _STEMS for one in stems
}


def synonyms_of(word: str) -> tuple[str, ...]:
    """The stems of words that mean the same, in the order in which they stand; not that of the word itself."""
    return _OTHERS.get(stem(word), ())
