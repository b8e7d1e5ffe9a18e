"""What the calls of a script do with what they are given, whatever its language: what they read, fetch, send, decode,
run and delete becomes facts and tags. `script_calls` knows the functions by name, `scripts` reads the code.
"""

from collections.abc import Callable

import msgspec

from vskill_scan.code.script_calls import HOMES, SENDING_OPTIONS, Doing
from vskill_scan.code.taint import (
    ASSEMBLED,
    DECODED,
    FETCHED,
    NOTHING,
    OUT,
    SECRET,
    SOCKET,
    Program,
    RunShell,
    Value,
    join_values,
)
from vskill_scan.places import host_in, host_kind, is_broad


class CallPlace(msgspec.Struct, frozen=True, gc=False):
    """Where a call stands."""

    start: int
    length: int


class CallInputs(msgspec.Struct, frozen=True, gc=False):
    """What a call is given."""

    own: Value
    receiver: Value
    arguments: list[Value]

    @property
    def everything(self) -> Value:
        own = Value(self.own.tags)
        return join_values(
            [*self.arguments, Value(self.receiver.tags, self.receiver.text.strip("?")), own], " "
        )


class ScriptEffects:
    """What the calls of one script do."""

    def __init__(self, program: Program, run_shell: RunShell, name_before: Callable[[int], str]) -> None:
        """`name_before` gives the handle that a call which begins at a place fills, "" for none."""
        self._program = program
        self._run_shell = run_shell
        self._name_before = name_before

    def apply(self, doing: Doing | None, name: str, given: CallInputs, place: CallPlace) -> Value:
        if doing is None:
            returned = join_values([given.receiver, *given.arguments, given.own])
            return Value(returned.tags, given.receiver.text.strip("?") or returned.text.strip("?"))
        return _EFFECTS[doing](self, name, given, place)

    def on_read(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = given.everything
        if "://" in everything.text and host_in(everything.text):
            return self.on_fetch(name, given, place)
        if SOCKET in everything.tags and "STD" in everything.text:
            self._program.fact("reverse.shell", place.start, place.length, how="socket")
        content = self._program.read_file(everything, place.start, place.length)
        for argument in given.arguments[:1]:
            if name.endswith("open") and len(given.arguments) > 1 and not argument.text.strip("?"):
                self._program.assign(self._name_before(place.start), content)
        return Value(content.tags)

    def on_walk(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = given.everything
        if everything.text.strip().lower().startswith("env"):
            return self._program.dump_environment(place.start, place.length)
        content = self._program.read_file(everything, place.start, place.length)
        own = (
            {SECRET + "documents"}
            if is_broad(everything.text.split("*")[0]) and "*" in everything.text
            else set()
        )
        return Value(content.tags | everything.tags | own, everything.text)

    def on_write(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        if SOCKET in given.everything.tags:
            return self.on_send(name, given, place)
        first = given.arguments[0] if given.arguments else given.receiver
        everything = join_values([given.receiver, *given.arguments], " ")
        path = everything if "-" in name else first
        self._program.write_file(path, everything, place.start, place.length)
        if everything.tags:
            self._program.assign(self._name_before(place.start), Value(everything.tags))
        return NOTHING

    def on_create(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        """A file that is written to later, by the name that it is given."""
        path = given.arguments[0] if given.arguments else NOTHING
        self._program.write_file(path, NOTHING, place.start, place.length)
        return Value(path.tags | {OUT + path.text[-80:]}, path.text)

    def on_put(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        """Writing to a file or connection that was opened before; otherwise whatever it is given."""
        everything = given.everything
        for tag in sorted(everything.tags):
            if tag.startswith(OUT):
                self._program.write_file(Value(text=tag[len(OUT) :]), everything, place.start, place.length)
        return self.on_send(name, given, place) if SOCKET in given.receiver.tags else everything

    def on_fetch(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = join_values([*given.arguments, given.receiver], " ")
        if name in {"get", "request"} and "://" not in everything.text:
            return everything
        if SENDING_OPTIONS.search(everything.text) or everything.sensitive:
            return self.on_send(name, given, place)
        return self._program.fetch(everything, name, place.start, place.length)

    def on_send(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = join_values([*given.arguments, given.receiver], " ")
        self._program.note_target(everything, name, place.start, place.length)
        return self._program.send(everything, everything, name, place.start, place.length)

    def on_decode(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        return self._program.decode(given.everything, name, place.start, place.length)

    def on_evaluate(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        if name.endswith((".load", ".execute")) and not given.everything.tags:
            return NOTHING
        self.run(given.everything, name, place)
        return given.everything

    def run(self, content: Value, name: str, place: CallPlace) -> None:
        if SOCKET in content.tags:
            self._program.fact("reverse.shell", place.start, place.length, how="socket")
        how = "eval" if content.tags & {FETCHED, DECODED} else name
        self._program.execute(content, how, place.start, place.length)

    def on_run(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = join_values(given.arguments, " ") if given.arguments else given.receiver
        self.run(everything, name, place)
        text = everything.text.strip("? ")
        output = self._run_shell(text, place.start, place.length, tags=everything.tags) if text else NOTHING
        return Value(everything.tags | output.tags)

    def on_delete(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = join_values([given.receiver, *given.arguments], " ")
        for part in everything.text.split():
            if is_broad(part):
                self._program.fact("delete.broad", place.start, place.length, what="~")
        return NOTHING

    def on_connect(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        text = given.everything.text
        if "localhost" in text or host_kind(host_in(text) or text.split(":")[0]) in {"local", "private"}:
            return NOTHING
        return Value(frozenset({SOCKET}), text)

    def on_dump(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        return self._program.dump_environment(place.start, place.length)

    def on_clipboard(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        return Value(frozenset({"secret:clipboard"}))

    def on_home(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        return Value(frozenset({"path:home"}), "~")

    def on_join(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        return join_values(given.arguments, "/")

    def on_reverse(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        everything = given.everything
        return Value(everything.tags | {ASSEMBLED}, everything.text.strip()[::-1])

    def on_variable(self, name: str, given: CallInputs, place: CallPlace) -> Value:
        if not given.arguments or not given.arguments[0].text:
            return self._program.dump_environment(place.start, place.length)
        wanted = given.arguments[0].text
        if wanted.lower() in HOMES:
            return Value(frozenset({"path:home"}), "~")
        return self._program.read_variable(wanted)


_EFFECTS: dict[Doing, Callable[[ScriptEffects, str, CallInputs, CallPlace], Value]] = {
    Doing.READ: ScriptEffects.on_read,
    Doing.WALK: ScriptEffects.on_walk,
    Doing.WRITE: ScriptEffects.on_write,
    Doing.CREATE: ScriptEffects.on_create,
    Doing.PUT: ScriptEffects.on_put,
    Doing.FETCH: ScriptEffects.on_fetch,
    Doing.SEND: ScriptEffects.on_send,
    Doing.DECODE: ScriptEffects.on_decode,
    Doing.EVALUATE: ScriptEffects.on_evaluate,
    Doing.RUN: ScriptEffects.on_run,
    Doing.DELETE: ScriptEffects.on_delete,
    Doing.CONNECT: ScriptEffects.on_connect,
    Doing.DUMP: ScriptEffects.on_dump,
    Doing.CLIPBOARD: ScriptEffects.on_clipboard,
    Doing.HOME: ScriptEffects.on_home,
    Doing.JOIN: ScriptEffects.on_join,
    Doing.REVERSE: ScriptEffects.on_reverse,
    Doing.VARIABLE: ScriptEffects.on_variable,
}
