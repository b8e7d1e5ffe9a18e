#!/bin/sh
# Installs what a lock names, by its hashes and nothing else, for a Python: by uv, which takes seconds, and by pip where
# uv is not there or does not get to the packages (it does not read how pip is configured for an index).
set -eu

python=${1:?usage: tools/install.sh PYTHON LOCK [OPTION...]}
lock=${2:?usage: tools/install.sh PYTHON LOCK [OPTION...]}
shift 2

set -- --quiet --no-deps "$@" --require-hashes -r "$lock"
"${UV:-.venv/bin/uv}" pip install --python "$python" "$@" >/dev/null 2>&1 </dev/null && exit
exec "${PIP:-.venv/bin/python}" -m pip --python "$python" --disable-pip-version-check --no-input install "$@" </dev/null
