"""What the commands of a shell do with what they are given: read, pass on, fetch, send, decode, run, delete, install.
`shell` reads the statements and words around them.
"""

from collections.abc import Callable

from vskill_scan.code.shell_words import (
    decodes,
    expected_after,
    interpreter_language,
    keeps_name,
    runs_shell,
    scheduled_by,
)
from vskill_scan.code.taint import (
    EMPTY,
    NOTHING,
    SOCKET,
    STORED,
    Program,
    RunShell,
    Value,
    decode,
    join_values,
    literal,
)
from vskill_scan.places import persists_at, secret_at
from vskill_scan.words import words

_SHELLS = frozenset(words("sh bash zsh dash ksh ash fish busybox"))
_INTERPRETERS = frozenset(
    words("python python2 python3 node nodejs perl ruby php deno bun osascript pwsh powershell")
)
_READERS = frozenset(
    words(
        "cat less more head tail tac nl grep egrep fgrep rg awk sed cut sort uniq strings xxd od hexdump "
        "base64 base32 tar zip gzip "
        "bzip2 7z cp mv rsync find ls sqlite3 jq yq openssl gpg tee dd split wc plutil"
    )
)
#: Given a filter, they pass on what it picks.
_PICKERS = frozenset(words("jq yq grep egrep fgrep rg awk sed cut"))
_SEND_OPTIONS = words(
    "-d --data -F --form -T --upload-file --json --post-data --post-file --body-data --body-file"
)
_UPLOAD_FILES = ("--post-file=", "--upload-file=", "--body-file=")
_SENDERS = frozenset(
    words("nc ncat netcat socat telnet ssh scp rsync sftp ftp mail mailx sendmail mutt swaks")
)
_SOCKETS = frozenset(words("nc ncat netcat socat"))
_NAME_SERVICES = frozenset(words("nslookup dig host ping"))
_BROAD = frozenset(words("/ /* ~ ~/ ~/* $HOME $HOME/ $HOME/* ${HOME} /home /Users /etc /usr /var C:\\"))
#: Filters that may hide a text, and show it again.
_UNTANGLING = frozenset(words("base64 base32 xxd openssl rev tr"))


class ShellCommands:
    """Commands by name, in one program."""

    def __init__(self, program: Program, nested: RunShell) -> None:
        """`nested` reads a command line that stands as a text inside this one."""
        self._program = program
        self._nested = nested

    def run(self, words: list[Value], stdin: Value, start: int, length: int) -> Value:
        """What a command writes to its output."""
        name = _plain_name(words[0].text)
        arguments = words[1:]
        handler = _COMMANDS.get(name)
        if handler is not None:
            return handler(self, name, arguments, stdin, start, length)
        if name in _SHELLS or name in _INTERPRETERS:
            return self._interpreter(name, arguments, stdin, start, length)
        if name == "openssl" and any(argument.text == "s_client" for argument in arguments):
            return self._sender(name, arguments, stdin, start, length).tagged(SOCKET)
        if name in _SENDERS:
            return self._sender(name, arguments, stdin, start, length)
        if name in _NAME_SERVICES and join_values(arguments).sensitive:
            return self._program.send(NOTHING, join_values(arguments), "dns", start, length)
        if name in _READERS or name in _UNTANGLING or stdin.tags:
            return self._reader(name, arguments, stdin, start, length)
        self._runs_file(words[0], start, length, "program")
        return Value(join_values(arguments).tags)

    def _reader(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        """Reads its files or its input, and passes them on."""
        program = self._program
        output = stdin
        # The last word of these is what they write.
        for argument in arguments[:-1] if name in {"cp", "mv"} else arguments:
            if secret_at(argument.text) or STORED + argument.text.rpartition("/")[2] in program.names:
                output = output | program.read_file(argument, start, length)
            output = Value(output.tags | argument.tags)
        texts = [argument.text for argument in arguments]
        if name in _PICKERS and any(len(text) > 1 and not text.startswith("-") for text in texts):
            output = output.narrowed()
        if name in _UNTANGLING and decodes(name, texts):
            return decode(Value(output.tags, output.text, stdin.literal))
        if name in {"cp", "mv", "tee", "rsync", "tar", "zip"} and texts:
            self._writes(name, arguments, output, start, length)
        return Value(output.tags, output.text)

    def _writes(self, name: str, arguments: list[Value], content: Value, start: int, length: int) -> None:
        plain = [argument for argument in arguments if not argument.text.startswith("-")]
        if name == "tar" and plain and set(plain[0].text) <= set("cxzvfjJpr"):
            plain = plain[1:]
        targets = {"tee": plain, "tar": plain[:1], "zip": plain[:1]}.get(name, plain[-1:])
        for target in targets:
            self._program.write_file(target, content, start, length)

    def on_curl(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        program = self._program
        texts = [argument.text for argument in arguments]
        content, target, output_file = self._transfer(name, arguments, stdin)
        program.note_target(target, name, start, length)
        sends = any(text.startswith(_SEND_OPTIONS) and not text.startswith("--data-dir") for text in texts)
        sends = sends or bool(content.sensitive)
        result = (
            program.send(target, content, name, start, length)
            if sends
            else program.fetch(target, name, start, length)
        )
        if output_file:
            program.write_file(literal(output_file), result, start, length)
        elif keeps_name(name, set(texts)):
            program.store(target.text.rpartition("/")[2], result)
        return result

    def _transfer(self, name: str, arguments: list[Value], stdin: Value) -> tuple[Value, Value, str]:
        """What is sent, where to, and which file the answer goes to."""
        content, target, output_file = EMPTY, NOTHING, ""
        expects = ""
        for argument in arguments:
            text = argument.text
            if expects == "file":
                output_file = text
            elif expects == "upload" or text.startswith(_UPLOAD_FILES):
                path = text.partition("=")[2] if text.startswith(_UPLOAD_FILES) else text
                content = content | (
                    stdin if path in {"-", "."} else self._program.read_file(literal(path), 0)
                )
            elif "@" in text and not text.startswith("http"):
                path = text.rpartition("@")[2]
                content = content | (stdin if path == "-" else self._program.read_file(literal(path), 0))
            elif "://" in text or (not target.text and "." in text and not text.startswith("-")):
                target = target if "://" in target.text else argument
            said = argument.without_keys() if expects == "header" else argument
            content = Value(content.tags | said.tags, content.text)
            expects = expected_after(name, text)
        return content, target, "" if output_file == "-" else output_file

    def _interpreter(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        program = self._program
        if SOCKET in stdin.tags:
            program.fact("reverse.shell", start, length, how="pipe")
        for number, argument in enumerate(arguments):
            if argument.text in {"-c", "-e", "-Command", "-lc", "-ic", "-r"} and number + 1 < len(arguments):
                script = join_values(arguments[number + 1 :], " ")
                program.execute(script, name, start, length)
                if script.text:
                    given = script if name in _SHELLS else arguments[number + 1]
                    output = self._nested(given.text, start, length, interpreter_language(name))
                    stdin = stdin | output
            elif argument.text.lower() in {"-enc", "-encodedcommand", "-e"} and name in {
                "powershell",
                "pwsh",
            }:
                program.fact("exec.decoded", start, length, how=name)
        if "-i" in [argument.text for argument in arguments] and "/dev/tcp" in join_values(arguments).text:
            program.fact("reverse.shell", start, length, how="dev-tcp")
        plain = [argument for argument in arguments if not argument.text.startswith("-")]
        if stdin.literal and len(stdin.text) > 1 and not plain:
            stdin = stdin | self._nested(stdin.text, start, length, interpreter_language(name))
        program.execute(
            stdin | join_values(argument for argument in arguments if not argument.text), name, start, length
        )
        if plain:
            self._runs_file(plain[0], start, length)
            program.execute(Value(plain[0].tags), name, start, length)
        return Value(stdin.tags)

    def _runs_file(self, path: Value, start: int, length: int, how: str = "file") -> None:
        stored = self._program.look_up(STORED + path.text.rpartition("/")[2])
        self._program.execute(Value(stored.tags), how, start, length)

    def on_evaluate(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        content = join_values(arguments, " ")
        self._program.execute(content, name, start, length)
        if arguments:
            self._runs_file(arguments[0], start, length)
            if name == "source" and secret_at(arguments[0].text):
                self._program.read_file(arguments[0], start, length)
        return NOTHING

    def on_environment(
        self, name: str, arguments: list[Value], stdin: Value, start: int, length: int
    ) -> Value:
        options = {"env": {"-0"}, "printenv": {"-0"}, "set": set()}.get(name, {"-p", "-x"})
        if any(argument.text not in options for argument in arguments):
            return NOTHING
        if name in {"set", "export", "declare"} and not arguments and not stdin.tags and name != "set":
            return NOTHING
        return self._program.dump_environment(start, length)

    def on_echo(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        if name == "printf" and arguments and "\\n" in arguments[0].text:
            shown = literal(arguments[0].text.replace("\\n", "\n"))
            arguments = [Value(arguments[0].tags, shown.text, arguments[0].literal), *arguments[1:]]
        if name == "printf" and len(arguments) > 1 and not arguments[0].text.replace("%s", "").strip():
            # A form that only puts its words in a row.
            return join_values(arguments[1:])
        return join_values(arguments, " ")

    def _sender(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        program = self._program
        content = stdin
        for argument in arguments:
            if secret_at(argument.text):
                content = content | program.read_file(argument, start, length)
            content = Value(content.tags | argument.tags)
        texts = [argument.text for argument in arguments]
        if name in _SOCKETS and any(runs_shell(text) for text in texts):
            program.fact("reverse.shell", start, length, how=name)
        answer = program.send(join_values(arguments, " "), content, name, start, length)
        return answer.tagged(SOCKET) if name in _SOCKETS else answer

    def on_remove(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        options = "".join(argument.text for argument in arguments if argument.text.startswith("-"))
        for argument in arguments:
            if argument.text.strip('"') in _BROAD and ("r" in options or "R" in options):
                self._program.fact("delete.broad", start, length, what=argument.text)
        return NOTHING

    def on_persist(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        if what := scheduled_by(name, [argument.text for argument in arguments]):
            self._program.fact("persist", start, length, what=what)
        return NOTHING

    def on_security(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        if secret_at(join_values(arguments, " ").text):
            return self._program.read_file(literal("find-generic-password"), start, length)
        return NOTHING

    def on_git(self, name: str, arguments: list[Value], stdin: Value, start: int, length: int) -> Value:
        texts = [argument.text for argument in arguments]
        if "push" in texts:
            return self._program.send(
                join_values(arguments, " "), join_values(arguments), "git", start, length
            )
        if "config" in texts and persists_at(" ".join(texts)):
            self._program.fact("persist", start, length, what="git-hook")
        if "clone" in texts:
            return self._program.fetch(join_values(arguments, " "), "git", start, length)
        return NOTHING


Handler = Callable[[ShellCommands, str, list[Value], Value, int, int], Value]
_COMMANDS: dict[str, Handler] = {
    **dict.fromkeys(("curl", "wget", "http", "https", "fetch"), ShellCommands.on_curl),
    **dict.fromkeys(("eval", "source", "."), ShellCommands.on_evaluate),
    **dict.fromkeys(("env", "printenv", "set", "export", "declare"), ShellCommands.on_environment),
    **dict.fromkeys(("echo", "printf"), ShellCommands.on_echo),
    **dict.fromkeys(("rm", "shred", "srm", "wipe"), ShellCommands.on_remove),
    **dict.fromkeys(("crontab", "launchctl", "systemctl", "schtasks", "reg", "at"), ShellCommands.on_persist),
    "security": ShellCommands.on_security,
    "git": ShellCommands.on_git,
}


_KNOWN = frozenset(_COMMANDS) | _SHELLS | _INTERPRETERS | _SENDERS | _NAME_SERVICES | _READERS | _UNTANGLING


def knows_command(name: str) -> bool:
    """Whether a command of this name does something that is known here."""
    return _plain_name(name) in _KNOWN


def _plain_name(command: str) -> str:
    return command.rpartition("/")[2].lower().removesuffix(".exe")
