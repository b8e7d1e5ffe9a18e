"""A real small model behind llama.cpp's own server: `python llama_server.py MODEL CONTEXT PREDICT`. It prints its address
and serves until its standard input ends, so it never outlives the test that started it.

It runs in the environment that `make test-judge` makes (`.venv/judge`), where nothing of ours is installed.
"""

import importlib
import sys
from pathlib import Path


def main(model: str, context: int, predict: int) -> None:
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = model
    # Without it, answers name the file.
    params.model_alias = {Path(model).stem}
    params.n_ctx = context
    params.n_predict = predict
    params.n_parallel = 1
    # Threads of llama.cpp spin while they wait for each other: on a busy machine two are slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = llama.Server(params)
    print(f"ADDRESS {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
