"""The words by which `capabilities` knows what a text names: programs, installers, hosts, paths, variables of the
environment. Tables and patterns; what they mean together is decided there.
"""

import re2

from vskill_core.capability import CapabilityKind
from vskill_scan.words import words

#: Instead of a host or program that is not written in the text.
CHOSEN_AT_RUN_TIME = "chosen at run time"

SECRETS = {
    "ssh": "SSH keys",
    "cloud": "cloud credentials",
    "registry": "package or code host credentials",
    "gpg": "GPG keys",
    "wallet": "a cryptocurrency wallet",
    "browser": "browser data",
    "keychain": "a system keychain",
    "agent": "an agent's settings or credentials",
    "agent-config": "an agent's configuration",
    "chat": "messenger data",
    "vault": "a password manager",
    "system": "system accounts",
    "history": "a shell history",
    "dotenv": ".env files",
    "every-dotenv": "every .env file",
    "env": "the whole environment",
    "metadata": "cloud instance metadata",
}
LASTING = {
    "cron": "cron",
    "at": "a scheduled job (at)",
    "launchd": "launchd",
    "systemd": "systemd",
    "task": "a scheduled task",
    "registry": "the Windows registry",
    "startup": "the start-up folder",
    "profile": "a shell profile",
    "authorized_keys": "SSH authorized keys",
    "git-hook": "git hooks",
    "agent": "an agent's settings, hooks or instructions",
    "sudoers": "sudoers",
    "hosts": "the hosts file",
}

#: Facts about code that belong on a card, and the words for what they name.
FACTS: dict[str, tuple[CapabilityKind, dict[str, str]]] = {
    "secret.read": (CapabilityKind.SECRET, SECRETS),
    "env.dump": (CapabilityKind.SECRET, {"": "the whole environment"}),
    "persist": (CapabilityKind.PERSISTENCE, LASTING),
}

#: Programs that every script uses on its own files, and words of the shell itself.
TAME = frozenset(
    words(
        "cd echo printf export set unset read local declare typeset readonly return exit break continue shift true "
        "false pwd pushd popd dirs umask ulimit getopts trap wait type hash builtin let alias unalias shopt bg fg jobs "
        "cat ls head tail wc sort uniq cut tr tee mkdir touch cp mv ln basename dirname date sleep seq expr grep egrep "
        "fgrep rg sed awk find which diff cmp less more nl paste join fold fmt column stat file du df id whoami "
        "hostname uname tput clear yes mktemp realpath readlink rmdir tree test comm rev tac split bc cal time source "
        "history help man info logout"
    )
)
#: Programs whose lines tell nothing else either.
UNTOLD = frozenset(word.encode() for word in TAME - {"source"})
PROGRAM_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-"
PROGRAMS_IN_CAPITALS = frozenset(words("Rscript R"))
SHELLS = frozenset(words("sh bash zsh dash ksh fish python python3 node perl ruby pwsh"))
#: What runs the output of a command that is put into its own.
EVALUATING = SHELLS | {"eval", "source", "."}
#: What may follow an interpreter that runs what it is given.
READS_INPUT = frozenset(words("- -s -x -e -es -se -euo -ex --"))
#: Programs that start others, and are worth a line themselves.
RAISING = frozenset(words("sudo doas"))
DOWNLOADERS = frozenset(words("curl wget"))
REDIRECTS = frozenset(words("> >> < 2> 2>> &> >&2 2>/dev/null >/dev/null 2>&1 1>&2"))
RUNNERS = frozenset(words("npx uvx bunx pipx"))
MANAGERS = {
    **dict.fromkeys(
        words("pip pip3 gem brew apt apt-get yum dnf snap choco winget conda mamba"), frozenset({"install"})
    ),
    **dict.fromkeys(words("npm pnpm bun"), frozenset({"install", "i", "add"})),
    "yarn": frozenset({"add"}),
    "uv": frozenset({"add", "install"}),
    "poetry": frozenset({"add"}),
    "cargo": frozenset({"install", "add"}),
    "go": frozenset({"install", "get"}),
    "apk": frozenset({"add"}),
    "pacman": frozenset({"-S", "-Sy", "-Syu"}),
    "claude": frozenset({"install", "add"}),
}  # fmt: skip
INSTALLERS = RUNNERS | MANAGERS.keys()
NOT_A_PACKAGE = frozenset(
    words(
        "ensurepath list upgrade uninstall inject install i add get tool pip global mcp plugin -- . ./ dlx exec run"
    )
)
#: Options of installers that take the next word.
TAKES_A_WORD = frozenset(
    words("-i --index-url --extra-index-url --registry --index -f --find-links -t --target -c --python -p --prefix "
          "--channel -n --name --scope -s --transport -e --env --directory --from")
)  # fmt: skip
PACKAGE = re2.compile(r"^@?[A-Za-z0-9][\w.+/@:~-]{0,99}$")
VERSION = re2.compile(r"(?:[=<>~!^].*|\[.*|@[\w.^~-]*)$")
MOST_PACKAGES = 12

ADDRESS = re2.compile(
    rb"(?i)\b(?:https?|wss?|ftps?|ssh|git|tcp|udp)://(?:[^/\s@\"'`<>]{1,80}@)?"
    rb"((?:[a-z0-9_.\-]|\$?\{[^{}\s\"'`/]+\}|\$\w+|<[\w -]+>|\[[0-9a-f:]+\])+)"
)
UNKNOWN_PART = re2.compile(r"\$?\{[^{}]*\}|\$\w+|<[^<>]*>")
HOST = re2.compile(r"^(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]{0,200}[a-z0-9])?\.[a-z][a-z0-9-]{1,30}$")
#: An address whose host is a variable.
UNKNOWN_ADDRESS = re2.compile(r"^\$\{?[A-Za-z_]\w*\}?(?:/.*)?$")
IP = re2.compile(r"^(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:]+\])$")
BARE_HOST = re2.compile(
    r"^(?:[\w.+-]+@)?([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,24}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?::\d+|:?/.*|:.*)?$"
)
FILE_ENDING = frozenset(
    words("sh py js ts json txt md yaml yml toml html css csv xml log zip gz tgz tar png jpg pdf conf cfg ini sql out "
          "exe bin pem key crt env lock rb go rs java c h cpp mp3 mp4 wav webm db sqlite")
)  # fmt: skip
#: Names of formats that look like addresses; nothing asks these hosts for anything.
NAMESPACES = frozenset(
    words("www.w3.org schemas.openxmlformats.org schemas.microsoft.com json-schema.org purl.org xmlns.com schema.org "
          "ns.adobe.com schemas.android.com docs.oasis-open.org www.apple.com/dtds openid.net www.opengis.net "
          "sodipodi.sourceforge.net www.inkscape.org json.schemastore.org agent-plugins.org")
)  # fmt: skip
LOOPBACK = frozenset(words("localhost 127.0.0.1 0.0.0.0 [::1] host.docker.internal"))
CONNECT = re2.compile(
    rb"(?i)(?:HTTPS?Connection|create_connection|\.connect(?:_ex)?|TCPSocket\.(?:new|open)|fsockopen|TcpClient|\bhost(?:name)?[\"']?\s*[:=])\s*\(?\s*\(?\s*[\"']([a-z0-9.-]{4,120})[\"']"
)
#: Calls that use the network, whatever host they are given.
CALLS = re2.compile(
    rb"\brequests\.(?:get|post|put|patch|delete|head|request|Session)\b|\burl(?:open|retrieve)\(|\b(?:httpx|aiohttp|urllib3|"
    rb"smtplib|imaplib|ftplib|paramiko|boto3)\.\w|\bsocket\.socket\(|\bfetch\(|\baxios\b|XMLHttpRequest|new WebSocket|"
    rb"(?i:\bhttps?\.(?:get|post|request|newrequest)\()|Net::HTTP|HttpClient|reqwest::|net\.Dial|\bcurl_exec\(|Invoke-(?:WebRequest|RestMethod)|"
    rb"\b(?:OpenAI|AsyncOpenAI|Anthropic|AsyncAnthropic)\("
)
#: Calls that send something, that fetch something or connect, and that run what is not written there.
_SENDS = re2.compile(
    rb"(?i)\.(?:post|put|patch)\s*\(|method[\"']?\s*[:=]\s*[\"'](?:POST|PUT|PATCH)|sendBeacon|sendall\(|sendto\(|"
    rb"urlopen\([^\n]{0,200}data\s*=|Request\([^\n]{0,200}data\s*=|-Method\s+(?:Post|Put|Patch)|-(?:Body|InFile)\s|"
    rb"\bpost(?:_form|form|async)?\s*\(|new WebSocket|sendmail|send_message\(|->post\b|\bcurl\s[^\n]{0,120}\s-[dFT]\b|"
    rb"curl_setopt|\bmail\(|upload(?:file|string|data)|\.send\b"
)
_FETCHES = re2.compile(
    rb"(?i)uri\.open|open-uri|net::http|http\.(?:get|request)|httparty|rest-?client|faraday|curl|\blwp\b|getstore|wget|"
    rb"download(?:string|file|data)|bitstransfer|bitsadmin|certutil|invoke-(?:webrequest|restmethod)|\biwr\b|\birm\b|xmlhttp|"
    rb"winhttp|http\.newrequest|(?:open|file_get_contents|include|require|loadstring)\b[^\n]{0,40}https?://|"
    rb"tcpsocket|fsockopen|inet(?:->|::)|socket\.tcp|tcpclient|(?:net|tls)\.dial|stream_socket_client|socket_connect"
)
_EVALUATES = re2.compile(
    rb"(?i)\beval\b|_eval\b|\bload(?:string)?\s*[(\s]|\bdofile\b|\binclude(?:_once)?\b[^\n]{0,20}(?:\$|https?:)|"
    rb"create_function|\biex\b|invoke-expression|scriptblock|execute(?:global)?\s|&\s*[($]|"
    rb"(?:system|exec|popen|shell_exec|passthru|os\.execute|exec\.command|start-process|process\]?(?:::|\.)start|spawn|"
    rb"\.run|do shell script|^\s*start)\s*[( ]\s*(?:[$@a-z_(]|[\"'](?:/tmp/|\./|%temp|/bin/(?:ba)?sh|cmd|powershell))|"
    rb"\|\s*getline"
)
DOING = (_SENDS, _FETCHES, _EVALUATES)
#: The same two of JavaScript, whose honest programs fetch and start others all the time: what it runs is a text.
RUNS_A_TEXT = (
    re2.compile(rb"\bfetch\s*\(|\bhttps?[\"')]*\.get\s*\(|\baxios\b|\bgot\s*\("),
    re2.compile(rb"\beval\b|\bnew\s+Function\b|\brunIn\w+Context\s*\("),
)
#: Programs that send what they are given, and options of those that may.
SENDERS = frozenset(words("nc ncat netcat scp sftp rsync ftp"))
SENDING = words("-d --data -F --form -T --upload-file --json --post-data --post-file --body-data --body-file")
ASKING = DOWNLOADERS | {"http", "https"}
#: How paths outside a skill's own folder begin, and those of files that nobody keeps.
OUTSIDE, THROWN_AWAY = ("..", "~", "/"), ("/tmp/", "/var/tmp/", "~/.cache/")  # noqa: S108 - compared, not used
METHODS = frozenset(words("POST PUT PATCH -XPOST -XPUT -XPATCH --method=POST --request=POST"))
TALKING = frozenset(words("nc ncat netcat telnet ssh scp sftp rsync ftp ping curl wget http https"))
#: A line that only tells a person something.
TELLING = tuple(
    word.encode()
    for word in words(
        "print echo printf log. logger. logging. log( console. raise throw sys.exit parser. help= description= epilog= "
        "click.echo die usage"
    )
)
DOES = re2.compile(rb"(?i)requests\.|urlopen|fetch\(|httpx|curl\b|wget\b|subprocess|system\(|[|`]|\$\(|exec")

VARIABLE = (
    rb"([A-Z][A-Z0-9_]{0,60}?(?:API_?KEY|_KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|MNEMONIC|"
    rb"_PAT|_PWD))"
)
SECRET_VARIABLE = re2.compile(
    rb"\$\{?"
    + VARIABLE
    + rb"\b|(?:environ(?:\.get\(|\[)|getenv\(|process\.env(?:\.|\[)|Deno\.env\.get\(|Bun\.env\.|ENV\[|"
    rb"env::var\(|Getenv\(|GetEnvironmentVariable\(|\$env:)\s*[\"']?" + VARIABLE + rb"\b"
)
ASSIGNED = re2.compile(rb"(?m)^[ \t]*(?:(?:local|export|readonly|declare)[ \t]+)?([A-Z][A-Z0-9_]*)=([^\n]*)")
PATH = re2.compile(
    rb"(?:(?:~|\$HOME|\$\{HOME\})[/\\]|/(?:etc|var|opt|root|home|Users|Library|srv|System)/|"
    rb"%(?:APPDATA|LOCALAPPDATA|USERPROFILE|PROGRAMDATA)%\\|\$env:(?:APPDATA|LOCALAPPDATA|USERPROFILE)\\)"
    rb"(?:Application\\? Support|[\w.@%+~/\\-])+"
)
BEFORE_A_PATH = frozenset(b" \t\n\"'`(=:,[<>|;&{")

STARTS = {
    "python": re2.compile(
        rb"(?:\bsubprocess\.(?:run|call|check_call|check_output|Popen|getoutput|getstatusoutput)|\bos\.(?:system|popen|exec\w{1,3}|"
        rb"spawn\w{1,3})|create_subprocess_(?:exec|shell)|\bpty\.spawn)\s*\(\s*"
    ),
    "javascript": re2.compile(
        rb"(?:(?:^|[^\w.$])(?:exec|spawn|fork)|\b(?:execSync|spawnSync|execFile|execFileSync|execa|execaSync|Bun\.spawn|Deno\.Command)"
        rb"|child_process[\"')]*\.(?:exec|spawn))\s*\(\s*"
    ),
}  # fmt: skip
STARTS["typescript"] = STARTS["javascript"]
IMPORTS_STARTING = re2.compile(rb"child_process|execa|Bun\.spawn|Deno\.Command|shelljs|zx")
STARTING_WORDS = (b"subprocess", b"os.", b"pty")
BARE_RUN = re2.compile(rb"(?:^|[^\w.])(?:run|call|check_call|check_output|Popen|getoutput)\s*\(\s*")
LITERAL = re2.compile(rb"^[rbfu]{0,2}(?:\"([^\"\n]{1,300})\"|'([^'\n]{1,300})'|`([^`]{1,300})`)")
#: The list of arguments after a program, as Node takes it.
NEXT_LIST = re2.compile(rb"^\s*,\s*\[([^\]]{0,300})")
#: Lists that are given a name, with their first word.
LISTS = re2.compile(rb"\b(\w+)\s*(?::[^=\n]{1,40})?=\s*\[\s*[\"']([\w./+-]{1,60})[\"']")
NAME = re2.compile(rb"^\w+")

#: Manifests of packages, whose addresses are for readers.
MANIFESTS = frozenset(
    words("package.json pyproject.toml setup.cfg composer.json cargo.toml plugin.json marketplace.json manifest.json "
          "skill.json skill.yaml skill.yml")
)  # fmt: skip
INSTALL_HOOK = re2.compile(rb"\"((?:pre|post)?install|prepare)\"\s*:\s*\"")
MARKUP = (".html", ".htm", ".vue", ".svelte", ".sql", ".css")
