"""What the well-known functions of Python do with their arguments: read, write, fetch, send, decode, run.

The reader resolves names and evaluates arguments, and asks here.
"""

from collections.abc import Callable, Mapping

import msgspec

from vskill_scan.code.taint import (
    DECODED,
    HOME_TREE,
    NOTHING,
    OUT,
    SOCKET,
    STORED,
    Program,
    RunShell,
    Value,
    base_name,
    decode,
    join_values,
)
from vskill_scan.words import words

#: By effect, dotted names with aliases resolved.
FULL_NAMES: Mapping[str, str] = {
    "fetch": """
        requests.get requests.head httpx.get httpx.stream urllib.request.urlopen urllib.request.urlretrieve
        urllib.request.Request urlopen urlretrieve wget.download aiohttp.request urllib3.request
        urllib.urlopen urllib2.urlopen http.client.HTTPSConnection http.client.HTTPConnection
    """,
    "look_up_name": "socket.gethostbyname socket.getaddrinfo socket.gethostbyname_ex dns.resolver.resolve",
    "connect": """
        asyncio.open_connection socket.socket socket.create_connection websocket.create_connection
        websockets.connect websocket.WebSocketApp
    """,
    "remove_file": "os.remove os.unlink",
    "send": """
        requests.post requests.put requests.patch requests.request httpx.post httpx.put httpx.patch
        httpx.request
    """,
    "shell": """
        os.system os.popen subprocess.run subprocess.call subprocess.check_call subprocess.check_output
        subprocess.Popen subprocess.getoutput subprocess.getstatusoutput pty.spawn
        asyncio.create_subprocess_shell asyncio.create_subprocess_exec os.execvp os.execv os.execl os.spawnl
        commands.getoutput platform.popen
    """,
    "evaluate": "eval exec compile builtins.exec builtins.eval",
    "run_module": """
        __import__ importlib.import_module importlib.__import__ runpy.run_path runpy.run_module
        importlib.util.spec_from_file_location
    """,
    "decode": """
        base64.b64decode base64.b32decode base64.b85decode base64.a85decode base64.urlsafe_b64decode
        base64.decodebytes base64.standard_b64decode base64.b16decode bytes.fromhex bytearray.fromhex
        binascii.unhexlify binascii.a2b_base64 codecs.decode zlib.decompress gzip.decompress lzma.decompress
        bz2.decompress
    """,
    "pack": "json.dumps pickle.dumps yaml.dump",
    "unpickle": "marshal.loads pickle.loads pickle.load dill.loads cloudpickle.loads",
    "open": "open io.open codecs.open",
    "read": """
        sqlite3.connect dotenv_values dotenv.dotenv_values os.listdir os.walk glob.glob os.scandir
    """,
    "copy": """
        shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move os.rename shutil.make_archive
    """,
    "remove_tree": "shutil.rmtree",
}
#: By the last name alone, where the object before it is not known.
LAST_NAMES: Mapping[str, str] = {
    "look_up_name": "gethostbyname",
    "encrypt": "encrypt encryptor",
    "remove_file": "unlink",
    "send": """
        post put patch sendall sendto sendmail send_message storbinary upload_file upload_fileobj put_object publish
        urlopen_post
    """,
    "decode": "b64decode fromhex unhexlify",
    "read": "read_text read_bytes rglob iterdir glob",
    "write": "write write_text write_bytes writelines dump",
    "remove_tree": "rmtree",
    "fetch": "urlopen urlretrieve",
}
#: Written back, what was encrypted is lost to whoever lacks the key.
ENCRYPTED = "encrypted"


class Call(msgspec.Struct, frozen=True, gc=False):
    """One call with its evaluated parts."""

    #: dotted, aliases resolved
    name: str
    #: what stands behind the last dot
    last: str
    receiver: Value
    arguments: list[Value]
    keywords: Mapping[str, Value]
    start: int
    length: int

    @property
    def everything(self) -> Value:
        return join_values([*self.arguments, *self.keywords.values()])

    @property
    def said(self) -> Value:
        """Everything, but of what says who asks no keys."""
        keywords = (
            value.without_keys() if name in _HEADERS else value for name, value in self.keywords.items()
        )
        return join_values([*self.arguments, *keywords])

    @property
    def first(self) -> Value:
        return self.arguments[0] if self.arguments else next(iter(self.keywords.values()), NOTHING)


Effect = Callable[[Program, Call, RunShell], Value]


#: What says who asks.
_HEADERS = frozenset(words("headers auth cookies cert"))


def _fetch(program: Program, call: Call, _: RunShell) -> Value:
    sends = any(name in call.keywords for name in ("data", "json", "files", "content", "body"))
    if sends or "POST" in call.everything.text or "PUT" in call.everything.text:
        return _send(program, call, _)
    program.note_target(call.first, call.last, call.start, call.length)
    fetched = program.fetch(call.said, call.last, call.start, call.length)
    if call.last in {"urlretrieve", "download"} and len(call.arguments) > 1:
        program.write_file(call.arguments[1], fetched, call.start, call.length)
    return fetched


def _send(program: Program, call: Call, _: RunShell) -> Value:
    program.note_target(call.first, call.last, call.start, call.length)
    receiver = Value(call.receiver.tags).without_keys()
    return program.send(call.first, call.said | receiver, call.last, call.start, call.length)


def _pack(program: Program, call: Call, _: RunShell) -> Value:
    return program.pack(call.everything, call.last, call.start, call.length)


def _read(program: Program, call: Call, _: RunShell) -> Value:
    path = call.receiver | call.first if call.last in _OF_RECEIVER else call.first
    return program.read_file(path, call.start, call.length)


def _open(program: Program, call: Call, _: RunShell) -> Value:
    mode = call.arguments[1].text if len(call.arguments) > 1 else call.keywords.get("mode", NOTHING).text
    if any(letter in mode for letter in "wax+"):
        program.write_file(call.first, NOTHING, call.start, call.length)
        # What is written later goes to the same name.
        return Value(frozenset({OUT + call.first.text[-80:]}))
    return program.read_file(call.first, call.start, call.length)


def _write(program: Program, call: Call, _: RunShell) -> Value:
    if HOME_TREE in call.receiver.tags and ENCRYPTED in call.everything.tags:
        program.fact("delete.broad", call.start, call.length, what="~")
    if call.last in {"write_text", "write_bytes"}:
        program.write_file(call.receiver, call.first, call.start, call.length)
    for tag in call.everything.tags | call.receiver.tags:
        if tag.startswith(OUT):
            program.write_file(Value(text=tag[len(OUT) :]), call.everything, call.start, call.length)
    return NOTHING


def _look_up_name(program: Program, call: Call, _: RunShell) -> Value:
    """A name that is looked up reaches whoever answers for it."""
    if call.everything.sensitive:
        program.send(call.first, call.everything, "dns", call.start, call.length)
    return NOTHING


def _connect(_: Program, call: Call, __: RunShell) -> Value:
    """What comes over a connection to somewhere else."""
    text = call.everything.text
    local = any(host in text for host in ("localhost", "127.0.0.1", "0.0.0.0"))  # noqa: S104 - compared, not bound
    return NOTHING if local else Value(frozenset({SOCKET}))


def _remove_file(program: Program, call: Call, _: RunShell) -> Value:
    if HOME_TREE in call.everything.tags | call.receiver.tags:
        program.fact("delete.broad", call.start, call.length, what="~")
    return NOTHING


def _encrypt(_: Program, call: Call, __: RunShell) -> Value:
    value = join_values([call.receiver, *call.arguments, *call.keywords.values()])
    return value.tagged(ENCRYPTED)


def _copy(program: Program, call: Call, _: RunShell) -> Value:
    content = program.read_file(call.first, call.start, call.length)
    if len(call.arguments) > 1:
        program.write_file(call.arguments[1], content, call.start, call.length)
    return content


def _shell(program: Program, call: Call, run: RunShell) -> Value:
    command = call.first
    rest = join_values(call.arguments[1:2], " ")
    program.execute(
        Value(command.tags | rest.tags, command.text, command.literal), call.last, call.start, call.length
    )
    if command.text:
        stored = program.look_up(STORED + base_name(command.text.split(" ")[0]))
        program.execute(Value(stored.tags), "program", call.start, call.length)
        line = f"{command.text} {rest.text}".strip()
        output = run(line, call.start, call.length, tags=command.tags | rest.tags)
        return Value(command.tags | output.tags)
    return Value(command.tags)


def _evaluate(program: Program, call: Call, run: RunShell) -> Value:
    content = call.first
    program.execute(content, call.last, call.start, call.length)
    if content.text and DECODED in content.tags:
        run(content.text, call.start, call.length, "python")
    return content


def _run_module(program: Program, call: Call, run: RunShell) -> Value:
    """A module or file of the program's own making runs when it is imported."""
    for given in call.arguments[:2]:
        for name in (base_name(given.text), f"{given.text}.py"):
            program.execute(program.look_up(STORED + name), "import", call.start, call.length)
    return _evaluate(program, call, run)


def _decode(_: Program, call: Call, __: RunShell) -> Value:
    given = call.everything
    content = given | call.receiver
    return decode(Value(content.tags, content.text, given.literal and not call.receiver.text))


def _unpickle(program: Program, call: Call, _: RunShell) -> Value:
    program.execute(call.first, call.last, call.start, call.length)
    return Value(call.first.tags)


def _remove_tree(program: Program, call: Call, _: RunShell) -> Value:
    target = (call.first.text or call.receiver.text).strip()
    if target in {"/", "~", "~/", "/home", "/Users", "C:\\", "C:/", "/etc", "/usr"} or call.first.tags & {
        "path:home"
    }:
        program.fact("delete.broad", call.start, call.length, what=target or "home")
    return NOTHING


def _same(_: Program, call: Call, __: RunShell) -> Value:
    """Changes the form of a value, not what it is; of a key, what a function that nobody knows gives back is no key."""
    value = join_values([call.receiver, *call.arguments, *call.keywords.values()])
    return value if call.last in _KEEPS_KEYS else value.without_keys()


_KEEPS_KEYS = frozenset(
    words(
        "encode decode strip trim str bytes dict format replace lower upper b64encode urlsafe_b64encode hexlify hex "
        "quote urlencode join items values append update split"
    )
)
_OF_RECEIVER = frozenset(words("read_text read_bytes open rglob glob iterdir"))

_EFFECTS: Mapping[str, Effect] = {
    "connect": _connect,
    "copy": _copy,
    "decode": _decode,
    "encrypt": _encrypt,
    "evaluate": _evaluate,
    "fetch": _fetch,
    "look_up_name": _look_up_name,
    "open": _open,
    "pack": _pack,
    "read": _read,
    "remove_file": _remove_file,
    "remove_tree": _remove_tree,
    "run_module": _run_module,
    "send": _send,
    "shell": _shell,
    "unpickle": _unpickle,
    "write": _write,
}
FULL = {name: _EFFECTS[effect] for effect, names in FULL_NAMES.items() for name in words(names)}
LAST = {name: _EFFECTS[effect] for effect, names in LAST_NAMES.items() for name in words(names)}


def effect_of(call: Call) -> Effect:
    """What a call does; a function that nobody knows passes on what it is given."""
    return FULL.get(call.name) or LAST.get(call.last) or _same
