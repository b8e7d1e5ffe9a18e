"""What the well-known functions and commands of Ruby, Perl, PHP, Lua, PowerShell, Go, VBScript and awk do: read, write,
fetch, send, decode, run, delete, connect. By their last name in lower case, or by the last two where one is too common.

`scripts` reads the code, resolves names, and asks here.
"""

import enum
from functools import cache

import re2

from vskill_scan.places import KEY_NAMES
from vskill_scan.words import words


class Doing(enum.Enum):
    """What a call does with what it is given."""

    READ = "read"
    WALK = "walk"
    WRITE = "write"
    CREATE = "create"
    PUT = "put"
    FETCH = "fetch"
    SEND = "send"
    DECODE = "decode"
    EVALUATE = "evaluate"
    RUN = "run"
    DELETE = "delete"
    CONNECT = "connect"
    DUMP = "dump"
    CLIPBOARD = "clipboard"
    HOME = "home"
    JOIN = "join"
    REVERSE = "reverse"
    VARIABLE = "variable"


_NAMES: tuple[tuple[Doing, str], ...] = (
    (
        Doing.READ,
        """
        file.read file.binread io.read io.binread file.readlines file.open io.open io.lines readfile
        readalltext readallbytes
        os.readfile ioutil.readfile get-content gc file_get_contents fopen file open slurp read_file
        io.readlines os.open
        copy-item filesystemobject.opentextfile opentextfile files.readallbytes files.readstring
        """,
    ),
    (
        Doing.WALK,
        """
        dir.glob glob get-childitem gci recursivedirectoryiterator directoryiterator scandir
        dir.entries dir.children find.find
        filepath.walk filepath.walkdir filepath.glob lfs.dir dir.each_child
        """,
    ),
    (
        Doing.WRITE,
        """
        file.write io.write file_put_contents set-content add-content out-file writealltext
        writeallbytes os.writefile
        set-itemproperty new-itemproperty file.binwrite fputs fwrite appendalltext
        """,
    ),
    (Doing.CREATE, "os.create os.openfile file.create ioutil.tempfile os.createtemp createtextfile file.new"),
    (
        Doing.PUT,
        "io.copy io.copybuffer io.copyn copy_stream io.writestring write writestring print fprintf fprint",
    ),
    (
        Doing.FETCH,
        """
        get request uri.open http.get http.get_response httparty.get restclient.get faraday.get curl_exec
        getstore lwp.simple.get
        downloadstring downloadfile downloaddata start-bitstransfer http.request invoke-webrequest
        iwr invoke-restmethod irm
        wget curl httpclient.getstringasync getstringasync getbytearrayasync open-uri.open openuri http.newrequest
        """,
    ),
    (
        Doing.SEND,
        """
        http.post http.put http.postform httparty.post restclient.post faraday.post uploadstring
        uploadfile uploaddata uploadvalues
        send_message sendmail post put post_form postasync send-mailmessage mail curl_setopt
        curl_setopt_array postform
        """,
    ),
    (
        Doing.DECODE,
        """
        base64_decode frombase64string decode_base64 unpack pack gzinflate gzuncompress gzdecode
        str_rot13 hex2bin decode64
        strict_decode64 urlsafe_decode64 zlib.inflate inflate.inflate deflatestream gzipstream
        fromhexstring convert_uudecode
        decodestring hex.decodestring unhexlify
        """,
    ),
    (
        Doing.EVALUATE,
        """
        eval instance_eval class_eval module_eval load loadstring dofile loadfile include
        include_once require_once assert
        create_function iex invoke-expression scriptblock.create executeglobal execute instance_exec
        """,
    ),
    (
        Doing.RUN,
        """
        system exec popen io.popen shell_exec passthru proc_open os.execute exec.command
        start-process open3.capture2
        open3.capture3 open3.popen3 process.start kernel.system spawn pcntl_exec runtime.exec
        wscript.run shell.run syscall.exec
        """,
    ),
    (
        Doing.DELETE,
        "rm_rf rm_r remove-item unlink rmdir os.removeall rmtree remove_tree file.delete os.remove remove_dir",
    ),
    (
        Doing.CONNECT,
        """
        tcpsocket.new tcpsocket.open fsockopen pfsockopen inet.new socket.tcp tcpclient.new net.dial socket_connect
        stream_socket_client socket.connect sockets.tcpclient tls.dial net.dialtimeout
        """,
    ),
    (
        Doing.DUMP,
        "env.to_h env.to_a env.each env.map env.inspect os.environ env.to_json env.to_hash getenvironmentvariables",
    ),
    (Doing.CLIPBOARD, "get-clipboard clipboard.gettext clipboard.paste getdatafromclipboard"),
    (Doing.HOME, "dir.home homedir os.userhomedir"),
    (Doing.JOIN, "file.join filepath.join join-path path.join file.expand_path path.combine catfile"),
    (Doing.REVERSE, "strrev reverse string.reverse scalar.reverse"),
    (Doing.VARIABLE, "getenv os.getenv env.fetch getenvironmentvariable os.lookupenv"),
)
_BY_NAME = {name: doing for doing, names in _NAMES for name in words(names)}

#: Variables that hold the folder of the user.
HOMES = frozenset(words("home userprofile homepath homedrive appdata localappdata"))
#: Calls that take what follows them without brackets, in any of the languages.
BARE = frozenset(
    words(
        "eval system exec include include_once require_once load print puts echo unlink executeglobal execute open iex "
        "invoke-expression instance_eval"
    )
)
#: Options of PowerShell's requests that send something.
SENDING_OPTIONS = re2.compile(r"(?i)(?:^|\s)-(?:body|infile|form)\b|\b(?:post|put|patch)\b")


def doing_of(name: str) -> Doing | None:
    """What a call of this dotted name in lower case does."""
    parts = name.rsplit(".", 2)
    if len(parts) > 1:
        found = _BY_NAME.get(".".join(parts[-2:]))
        if found is not None:
            return found
    return _BY_NAME.get(parts[-1])


#: What code of these languages must hold to do harm: a way in, and what to do with it.
_RUNS = (
    r"\beval\b|_eval\b|\bload(?:string|file)?\b|\bdofile\b|\binclude(?:_once)?\b|\brequire_once\b|"
    r"\bassert\b|\biex\b|invoke-expression|scriptblock|executeglobal|\bexecute\b|\bsystem\b|\bexec\b|"
    r"popen|shell_exec|passthru|proc_open|os\.execute|exec\.command|start-process|capture[23]|popen3|"
    r"process\]?::start|\bspawn\b|do shell script|[^`]`[^`\n]+`|\bstart\b|&\s*\(|\.run\b|createobject"
)
_FETCHES = (
    r"uri\.open|open-uri|net::http|http\.get|httparty|rest-?client|faraday|file_get_contents|curl_exec|"
    r"\blwp\b|getstore|download|bitstransfer|http\.request|socket\.http|invoke-(?:webrequest|restmethod)|"
    r"\biwr\b|\birm\b|\bwget\b|\bcurl\b|httpclient|xmlhttp|winhttp|http\.newrequest|tcpsocket|fsockopen|"
    r"socket|tcpclient|net\.dial|certutil|bitsadmin|-urlcache|%\w+%%\w+%"
)
_DECODES = (
    r"[\"']\s*[+.]\s*[\"']|base64|unpack|\bpack\b|inflate|uncompress|rot13|hex2bin|decode|strrev|"
    r"deflatestream|gzip|fromhex"
)
_SENDS = (
    r"\bpost\b|\.put\b|upload|send_message|sendmail|smtp|\bmail\b|curl|invoke-(?:webrequest|restmethod)|"
    r"\biwr\b|\birm\b|http|socket|\blwp\b|net\.dial|wget|postform"
)
#: Places of secrets, in one text or in parts that a program joins; the environment as a whole; the keys of services.
_HOLDS = (
    r"\.ssh|\.aws|\.netrc|\.npmrc|\.pypirc|\.kube|\.docker|\.gnupg|git-credentials|login data|keychain|wallet|"
    r"id_rsa|id_ed25519|gcloud|\.azure|clipboard|\.env\b|cmdkey|password-store|generic-password|mozilla|firefox|"
    r"[\"'/\\](?:cookies|documents|desktop|credentials)\b|[\"'/\\ ]chrome\b|%env\b|\$_env\b|\benv:(?:\W|$)|"
    r"(?-i:\bENV\b)(?:[^\[{]|$)|environ\b|getenv\(\s*\)|environmentvariables|(?-i:" + KEY_NAMES + r")"
)
_DELETES = r"rm_rf|rm_r\b|remove-item|unlink|rmdir|removeall|remove_tree|\brd\b|\bdel\b|file\.delete"
_SOMEBODYS = r"home|userprofile|~|documents|desktop|[\"']/[\"'*]|c:\\"
#: In Go a text in backticks is no command, and few functions run anything.
_RUNS_OF = {"go": r"os/exec|exec\.command|syscall|startprocess|plugin"}


@cache
def _pairs(language: str) -> tuple[tuple["re2._Regexp", "re2._Regexp"], ...]:
    """What stands together in code that does harm."""
    runs = _RUNS_OF.get(language, _RUNS)
    pairs = ((runs, f"{_FETCHES}|{_DECODES}"), (_SENDS, _HOLDS), (_DELETES, _SOMEBODYS))
    return tuple(
        (re2.compile(f"(?i){first}".encode()), re2.compile(f"(?i){second}".encode()))
        for first, second in pairs
    )


def may_harm(code: bytes, language: str) -> bool:
    """Whether code of this language is worth reading."""
    return any(first.search(code) and second.search(code) for first, second in _pairs(language))
