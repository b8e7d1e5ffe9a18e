#!/bin/sh
# Makes .venv ready for work: finds a Python, creates the environment, installs the locked packages and then
# this package itself in editable mode. Called by the Makefile when the lock or pyproject.toml has changed.
# Says what it is doing in one line each; what installs says something only when it fails.
set -eu

venv=${1:?usage: tools/setup.sh VENV LOCK}
lock=${2:?usage: tools/setup.sh VENV LOCK}

say() { printf '%s\n' "setup: $*"; }

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if is_new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    say "no Python 3.11 or newer was found${PYTHON:+ at PYTHON=$PYTHON}." >&2
    say "install one, or name it: make setup PYTHON=/path/to/python3" >&2
    return 1
}

run_quietly() {
    if ! "$@" >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        say "failed: $*" >&2
        return 1
    fi
}

log=$(mktemp)
uv_lock=$(mktemp)
trap 'rm -f "$log" "$uv_lock"' EXIT

# An environment without a working pip is what an interrupted or refused creation leaves behind.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    python=$(find_python)
    say "creating $venv with $("$python" --version)"
    run_quietly "$python" -m venv --clear "$venv" || {
        say "on Debian and Ubuntu the package python3-venv provides what is missing" >&2
        exit 1
    }
elif ! is_new_enough "$venv/bin/python"; then
    say "$venv is older than Python 3.11: run 'make clean' and try again" >&2
    exit 1
fi

say "installing $(grep -c '==' "$lock") locked packages (the first time takes up to five minutes, as fast as the network and this machine are)"
# uv first: it installs the others in a tenth of the time. Without it, pip does.
sed -n '/^uv==/,/[^\\]$/p' "$lock" >"$uv_lock"
PIP=$venv/bin/python UV=$venv/bin/uv
export PIP UV
test -x "$UV" || sh tools/install.sh "$PIP" "$uv_lock" >/dev/null 2>&1 || say "going on without uv, which is slower"
run_quietly sh tools/install.sh "$PIP" "$lock"
say "installing vskill-platform in editable mode"
run_quietly "$venv/bin/python" -m pip install --no-input --disable-pip-version-check \
    --no-deps --no-build-isolation --editable .
say "ready"
