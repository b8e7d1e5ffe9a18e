"""Words that people use for the same thing when they look for a skill. Each line is a group: a query for one of its
words finds the others too, behind what has the word itself.

Words stand as search cuts them: lower case, without accents and hyphens; two words that belong together stand as one
("machinelearning"). Other forms of a word need no entry, stems see to them. A word may stand in several groups.
"""

from vskill_platform.domain.skills.stems import form_of

GROUPS = """
a11y accessibility wcag
abstract summary synopsis digest overview tldr
accelerate faster performance speed optimise
accounting bookkeeping ledger accountant
ad advert advertisement campaign
agenda schedule timetable
agreement contract clause nda
ai llm gpt claude chatgpt openai anthropic artificialintelligence
alarm alert notification notify pager
analyse analyze analysis analytics
android ios iphone mobile smartphone
animation motion
anonymise redact pseudonymise mask
answer reply respond response
api endpoint rest interface
app application
applicant candidate
appointment meeting calendar
architecture architect design
archive zip tar unzip
article blog post
artwork art drawing painting
assess evaluate rate grade
assignment homework exercise
attack exploit hack
attendee participant guest
audio sound
audit review inspect
authentication login signin oauth sso auth logon
authorisation permission access
autocomplete completion
automate automatic
aws amazon
azure microsoft
backup restore snapshot recover recovery
bash shell zsh sh commandline
batch bulk
behaviour behavior
benchmark performance measure
bibliography citation reference bibtex
bill invoice receipt
biology bioinformatics genetics genomics
blockchain ethereum solidity web3 crypto cryptocurrency bitcoin
book ebook epub
bot chatbot
bought buy
branch fork
broke broken
broken fail failure crash
browser chrome firefox safari
budget spending expense money finance financial
bug defect issue fault
build compile
built build
bundle webpack vite rollup esbuild
cache cdn
calculate compute
calendar schedule planner
cancel abort cancellation
catalogue catalog
categorise classify classification label
centre center
certificate cert tls ssl https
change modify alter
chart graph plot visualisation
chat conversation dialogue dialog messaging
check validate verify verification
chemistry chemical molecule
choose pick select
chosen choose
ci pipeline cicd continuousintegration continuousdelivery
clean tidy cleanup cleanse
cli terminal console commandline
client customer
cloud hosting
cms wordpress drupal
code program source
collaborate teamwork
collect gather
colour color
combine merge join concatenate
comic cartoon
compare comparison diff difference versus
competitor competition rival
compliance compliant regulation regulatory
compress shrink minify reduce
concurrency concurrent parallel multithreading thread
config configuration settings setup
container docker podman
convert conversion transform export
cook recipe meal dinner food
copy duplicate clone
correct fix
cost expense price
course class lesson training
cpp cplusplus
create make generate build produce
credential password secret token
crm salesforce hubspot
cron crontab timer recurring periodic
crop trim cut
csharp dotnet
csv tsv
currency exchange
curriculum syllabus
cv resume curriculum
cybersecurity security secure infosec
dashboard panel cockpit
database db
debug troubleshoot diagnose diagnosis
decide decision
deck slide presentation pptx powerpoint keynote slideshow
defence defense
delete remove erase drop
deploy release ship rollout
describe description
detect recognise identify
devops sre
diagram flowchart uml
diary journal
dictate transcribe transcript recording
directory folder
discover discovery explore
disk storage
docs documentation
doctor medical health medicine clinical
docx word
download fetch retrieve
draft write compose author
draw sketch illustrate
drew draw
duplicate deduplicate dedupe
e2e playwright cypress selenium endtoend
ecommerce shop store shopify
education teach school learning
electronics hardware circuit
email mail
embedding vector semantic
emoji emoticon
encrypt cipher
enhance improve better
environment env
equation formula
error exception
essay paper
estimate forecast
etl elt warehouse
example sample
excel spreadsheet xlsx xls worksheet workbook sheet
exercise workout fitness gym
expired renew
explain explanation understand
extension plugin addon
extract parse
fake mock stub
feedback comment
film movie video clip footage
filter query
find search locate lookup
flaky intermittent unreliable
flight travel trip airline
font typography typeface
forecast predict projection
form questionnaire survey
format layout
found find
frontend ui userinterface gui
function method procedure
gantt roadmap timeline
gcp google googlecloud
geography map gis geospatial geojson
git vcs versioncontrol
goal objective target okr
golang go
guide tutorial howto manual handbook walkthrough
haiku poem poetry verse
harden secure
hire recruit interview
holiday vacation trip travel
homepage website webpage site
hotel accommodation
hypothesis experiment
i18n internationalisation localisation l10n translate
icon svg
idea brainstorm ideation
image picture photo photograph
income salary earnings wage
infographic poster
infra infrastructure
injection sqli xss
inventory stock
invest portfolio
itinerary trip travel route
javascript js ecmascript
jupyter notebook ipynb colab
k8s kubernetes kubectl
kanban scrum agile sprint
knowledge wiki
labelling labeling
latency slow delay lag
latex tex
law legal attorney
layout grid arrangement
leak leakage
library package module
licence license
lint eslint prettier
linux ubuntu debian unix
literature paper publication
log logging
lookup vlookup xlookup
made make
maintain maintenance
malware virus trojan
markdown md
maths mathematics arithmetic
mcp modelcontextprotocol
measure metric
meeting standup
memory ram heap
metrics kpi
microcontroller arduino esp32 firmware embedded
microservice service
migrate upgrade
ml machinelearning
monitor observability
monorepo workspace
music song
narrate voiceover
neural deeplearning
newsletter mailing
nosql mongodb mongo
notion obsidian
npm yarn pnpm
openapi swagger
optimise tune
outage downtime incident
outlier anomaly
paginate paging
paraphrase rephrase rewrite reword
patch fix
pay payment checkout
pdf acrobat
permission privilege right
phishing spam
pitch proposal
podcast episode
postgres postgresql psql pgsql
postmortem retrospective retro
pr pull mr
practise practice
prd requirement specification spec
presentation talk speech
privacy gdpr ccpa personaldata
problem issue trouble
programme program
proofread grammar spellcheck spelling typo punctuation
propose proposal
protobuf grpc
prototype mockup wireframe
proxy gateway
python py
pytorch tensorflow keras
qr barcode
quiz exam trivia test
rag retrieval
ran run
react reactjs
realtime streaming
recommend suggest
redesign restyle
refactor restructure rewrite
regex regexp regularexpression
repair fix mend solve resolve
replace substitute swap
repository repo
research investigate
reservation booking
resize scale
reverse undo
revert undo rollback
risk threat
roadmap plan
rpc grpc
rss feed
sale selling
scanned ocr
schema structure
science scientific scientist
scrape crawl
sent send
sentiment emotion
seo searchengine
serverless lambda
shopping grocery
shortcut hotkey
sign signature
simplify simple plain simplification
slow sluggish
snippet example
social instagram twitter linkedin facebook tiktok
solve solution
song lyrics
sort order arrange
speak speech talk
split divide separate
start launch begin startup
stat statistics statistical
story storytelling narrative fiction
strategy strategic
student pupil learner
style css
subscribe subscription
subtitle caption srt
svelte sveltekit
synchronise sync
tailwind tailwindcss
task todo ticket
taught teach
tax vat
teacher tutor instructor
tech technology technical
telemetry tracing
template boilerplate scaffold starter skeleton
test qa
thesis dissertation
thread tweet
ticket jira
title heading
todo checklist
tool utility
topic subject
travelling traveling
trip travel journey tour
tts texttospeech
typescript ts
ui interface
unused dead obsolete
update upgrade bump
url link
usability ux
variable parameter
vue vuejs nuxt
vulnerability cve
wasm webassembly
weather climate
webhook callback
wedding party celebration
workflow process
"""


def _others() -> dict[str, tuple[str, ...]]:
    """By the form of a word: the forms of the others in its groups."""
    found: dict[str, dict[str, None]] = {}
    for group in GROUPS.split("\n"):
        forms = [form_of(word) for word in group.split()]
        for form in forms:
            found.setdefault(form, {}).update(dict.fromkeys(other for other in forms if other != form))
    return {form: tuple(others) for form, others in found.items()}


_OTHERS = _others()
#: Every word of the groups.
GROUPED = tuple(dict.fromkeys(GROUPS.split()))


def synonyms_of(word: str) -> tuple[str, ...]:
    """The forms of words that mean the same, in the order in which they stand; not that of the word itself."""
    return _OTHERS.get(form_of(word), ())
