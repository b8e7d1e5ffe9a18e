"""What a skill is often called by those who describe it, where those who look for it use another word: a tool for its
field ("docker" for containers), a part for its whole ("hotel" for travel). Each line leads from its first words to
those behind the sign, and not back: a query for travel does not mean every hotel.

Words stand as in the groups of synonyms.
"""

from vskill_platform.domain.skills.stems import form_of
from vskill_platform.domain.skills.synonyms import synonyms_of

LINES = """
3d > model
502 503 504 500 404 > error route server
ad advert campaign > marketing
adr rfc > decision architecture record
agenda > meeting plan
agent > tool model
airflow dagster prefect luigi > workflow schedule pipeline data
algebra calculus geometry equation arithmetic > mathematics
android playstore kotlin > mobile app
angular svelte solid preact remix gatsby > frontend component javascript web
anki memorise vocabulary revision study > flashcard card repetition
ansible puppet chef saltstack > playbook configuration server infrastructure
apache caddy haproxy traefik > nginx proxy server
api rest endpoint > service interface
arabic hindi turkish ukrainian foreign > translate language
architecture > design diagram decision system
arduino esp32 raspberrypi microcontroller sensor iot firmware > hardware electronics program
art painting drawing creative > picture draw design
arxiv pubmed scholar journal academic > paper research literature
async asyncio await coroutine promise > async concurrency
automate > script workflow
azure gcp aws > cloud
backup disaster > restore recovery
bank statement > budget finance
bash zsh powershell awk sed grep > script shell terminal
benchmark flamegraph bottleneck > performance profile
bibtex zotero mendeley endnote apa > citation reference
bicep cloudformation iac opentofu pulumi > infrastructure terraform cloud
bisect > git bug
blog article newsletter > write post
bot > message
brand logo identity > design
breach ransomware > incident security
broken fail error wrong > debug fix cause
bug > debug fix error
cad stl blender filament slicer > 3d print model
cargo crate borrow tokio > rust
changelog release > version note
chatbot > bot answer
chatgpt claude gpt llama gemini mistral openai > language model prompt
cloud > aws azure gcp infrastructure deploy
color palette theme > design colour
comment docstring javadoc jsdoc > documentation code
commit > git
competitor > market compare
composer php laravel symfony > web application php
conflict > merge
contract agreement > review clause
conversion landing funnel > page customer
cook dinner lunch breakfast food ingredient diet vegetarian vegan grocery kitchen > recipe meal
copywriting slogan tagline > write text brand marketing
cost bill finops expensive > cloud cost budget
cover apply > letter position
cpu ram disk load > server memory performance process
crash panic segfault stacktrace traceback > debug error cause failure
cron crontab > schedule job timer
crop resize rotate watermark > image edit
csv > table data file
cypress selenium puppeteer > browser test web
dbt etl elt > data warehouse pipeline
deadline estimate > task plan
dependabot renovate > dependency update
desktop electron tauri > application
diff compare > change
django flask fastapi sanic > python web service
dna genome protein > biology research
dockerfile image registry compose > docker container
docs documentation > write guide
doctor symptom medication > health
dollar euro > currency
elasticsearch opensearch solr lucene > search
embedding vector rag retrieval > search answer passage
encrypt > security key
english > language grammar
epub kindle > book
essay story novel fiction poem > write text
exam quiz trivia test > question
excel > table formula
experiment > test plan
extension addon plugin > browser
face > image detect
feature > product requirement
ffmpeg premiere davinci > video edit
figma sketch wireframe mockup prototype > design component
finetune lora adapter > tuning train model
firewall vpn > network security
fitness workout gym exercise running > health plan
flexbox grid responsive > layout css page
flutter dart reactnative expo ionic > mobile app
font typography > design type
form > field fill
french german spanish italian chinese japanese portuguese dutch russian polish korean > translate language
game unity unreal godot > program
garden plant > home
gdpr ccpa hipaa cookie consent > privacy personal data
gem rails ruby sinatra > web application ruby
generative > art
gif animation > video image
github gitlab bitbucket > git repository pull
githubactions workflow > ci pipeline action
googlesheets airtable > spreadsheet
gpu cuda > train performance
grammar spelling typo > correct text proofread
graphql grpc protobuf soap > api schema
hack attack exploit pentest > security penetration vulnerability
hallucination > check fact evaluation
helm chart > kubernetes
hire recruiter candidate applicant hr > interview
html css sass scss bootstrap > web page style layout
https ssl letsencrypt > certificate tls
icon svg vector > draw design
illustrator inkscape > draw icon design
inbox outlook gmail reply > email
index > database search query
ingress loadbalancer > kubernetes route proxy
instagram twitter facebook tiktok youtube threads mastodon bluesky hashtag > social post media
invest stock portfolio trading crypto > finance market
invoice receipt bill > payment tax
ios iphone ipad xcode swift appstore > mobile app apple
java > kotlin spring jvm gradle
jenkins circleci travis buildkite teamcity > pipeline ci build
jest vitest mocha karma > javascript test frontend
jobhunt vacancy career > position interview
join cte subquery > sql query
jpg jpeg png gif webp heic tiff bmp screenshot thumbnail avatar wallpaper > image picture
jsx hook redux props > react component
jwt login oauth saml oidc sso mfa 2fa passkey > login authentication session token
kafka rabbitmq nats sqs pubsub celery > queue message stream
keynote slideshow googleslides > slide
kid children school classroom pupil homework > lesson teach class
kpi okr quarterly > goal objective measure
latex overleaf thesis dissertation > paper academic write
legacy technicaldebt spaghetti > code refactor
legal lawyer nda clause tenancy lease > contract law
letter > write
license > licence legal
lighthouse pagespeed webvitals cls lcp > page speed performance
linkedin > post profile
lint eslint prettier ruff black flake8 formatter > code style check
linux ubuntu debian centos fedora > server shell system
llm > language model
locale multilingual > translate language
logfile journalctl syslog > log
matplotlib seaborn plotly d3 ggplot tableau powerbi looker > chart data dashboard
maven gradle junit spring jpa hibernate > java jvm build
mcp > server tool protocol model
meeting standup zoom teams > calendar note
merge > conflict git combine
microservice > service architecture
miles kilometres kilometers celsius fahrenheit inches pounds kilograms metric imperial currency exchange > convert unit
minutes notes > meeting transcript
missing duplicate null dirty messy > data quality clean
ml machinelearning deeplearning neural classifier > model train learning
mobile phone smartphone > app application ios android
money spending expense savings personalfinance > budget bank
mongo cassandra couchdb firestore firebase supabase > database
mortgage loan > finance budget
mp4 avi mkv webm youtube trailer > video film
music song playlist spotify guitar piano > audio
mutation regression smoke > test
mysql mariadb oracle mssql sqlserver sqlite snowflake bigquery redshift clickhouse duckdb > sql database query
nextjs nuxt ssr > react server component web
nginx > proxy server
node > javascript backend
npm yarn pnpm node nodejs deno bun express > javascript package dependency library typescript
numpy scipy > python array
ocr > scan text recognise image
oom leak > memory
opencv yolo segmentation > vision image detect
outage downtime incident oncall pagerduty > incident response report alert
outdated deprecated > update dependency upgrade
outlier anomaly > detect data
package library wheel sdist > publish build
pandas polars dataframe > data table python
parquet avro arrow > data file
password apikey credential token > secret security
patent invention trademark > search claim
paypal checkout billing subscription > payment stripe
pdf > document
persona ux usability > user interview design
photo picture > image
photoshop gimp imagemagick > image picture edit
physics chemistry biology science > research experiment
pip poetry conda uv virtualenv pypi setuptools > python package dependency
pivot macro vba > spreadsheet excel formula
pod deployment namespace kubelet minikube eks gke aks openshift rancher > kubernetes cluster
podcast interview audio mp3 wav flac voice > recording speech transcribe
poster flyer leaflet brochure banner > design layout print
postgres > database sql
prd spec specification > requirement product
probability distribution bayesian > statistics
project > plan task
prometheus grafana datadog newrelic splunk kibana loki nagios zabbix > monitor metric alert log dashboard
prompt > model
publish release ship > deploy
pytest unittest doctest tox > python test
pytorch > train neural model
readme > documentation project
redis memcached > cache
refactor cleanup > code structure
regex regexp > pattern text
regression correlation significance pvalue hypothesis anova > statistics test
remind > calendar task
renew expired > certificate
rephrase paraphrase reword > rewrite text
report > document write
retrospective rootcause > postmortem report incident
roadmap milestone gantt > plan goal
s3 ec2 rds dynamodb cloudfront iam lambda > aws cloud
salary raise > negotiate
sale selling lead prospect crm > customer market
scan paper > document image
schema migration alembic flyway liquibase > database migration
scrape crawl > web data collect
scrum agile sprint > story task plan
security cybersecurity > audit threat vulnerability
semver version tag > release
sentry bugsnag > error monitor
seo google ranking keyword backlink > search engine
shop ecommerce shopify woocommerce > payment product customer
shopping grocery > list meal
signature sign > document contract
simplify > plain rewrite
slack discord telegram teams whatsapp > bot message channel
slow > performance speed
slow hang freeze stuck lag timeout > performance profile speed debug
smarthome light lamp thermostat heating alexa zigbee mqtt > home automation
source evidence claim misinformation > fact check
sox iso27001 soc2 compliance > audit security privacy
spark hadoop databricks flink > data distributed job
speech toast talk > presentation
sql > query database
startup founder pitch investor > business market
stash cherry reflog squash blame > git commit branch
stress k6 locust jmeter gatling > load test traffic
study > research paper learn
subtitle > caption video
sum average percentage > formula calculate
survey questionnaire feedback > question customer interview
swagger openapi postman > api specification
table > data
tailwind > css style
tax vat accounting bookkeeping > finance invoice
teacher lecture curriculum syllabus course > lesson class
tensorflow keras jax sklearn scikit > train model learning neural
thread deadlock race mutex goroutine > concurrency
timeseries trend seasonality > forecast
timezone appointment availability > calendar time meeting
tldr shorten condense digest > summary
todo checklist trello asana jira kanban ticket backlog > task plan
tracing span jaeger zipkin otel > trace opentelemetry
travel > trip
tts voiceover > speech
type mypy pyright annotation hint > typing
ui ux interface > design component
uml sequence erd flowchart > diagram
unit mock stub fixture tdd bdd coverage > test
unused > dead code remove
upgrade > update migrate version
vacation holiday trip flight hotel sightseeing journey tour roadtrip honeymoon > travel itinerary plan
vault keychain > secret
visio drawio lucidchart plantuml mermaid > diagram
vm vagrant vmware proxmox > server virtual
vulnerability cve owasp xss csrf sqli injection > security audit dependency
wasm > webassembly
wcag aria blind screenreader keyboard disability > accessibility
webhook > event
website webpage homepage site > web page
websocket sse realtime > stream
wedding party birthday > event plan
whisper dictation > transcribe speech recording
word docx odt googledocs > document
zip tar unzip > archive compress file
"""


#: The words before the sign of each line, and those behind it.
_SIDES = tuple(line.split(" > ") for line in LINES.strip().split("\n"))
#: Every word that leads to others.
ASKED = tuple(dict.fromkeys(word for asked, _ in _SIDES for word in asked.split()))


def _answers() -> dict[str, dict[str, None]]:
    """By the form of a word: the forms of those that answer it."""
    found: dict[str, dict[str, None]] = {}
    for asked, answers in _SIDES:
        for word in asked.split():
            found.setdefault(form_of(word), {}).update(dict.fromkeys(map(form_of, answers.split())))
    return found


_ANSWERS = _answers()


def related_to(word: str) -> tuple[str, ...]:
    """The forms of words that may answer it, in the order in which they stand; not its own and not its synonyms."""
    closer = {form_of(word), *synonyms_of(word)}
    return tuple(one for one in _ANSWERS.get(form_of(word), ()) if one not in closer)
