"""An MCP server over stdio with the tools that the conformance suite's server scenarios call.

Written by hand on the standard library, in the revision of 2025-11-25: what the suite sees of the newer one
comes from whatever stands in front of it.
"""

import json
import queue
import sys
import threading
import time

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
NOTHING = {"type": "object", "properties": {}}

# As the suite wants it, keyword for keyword.
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

text = lambda words: {"type": "text", "text": words}
image = {"type": "image", "data": PNG, "mimeType": "image/png"}


def resource(uri, kind, words):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


CONTENT = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [image],
    "test_audio_content": [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}],
    "test_embedded_resource": [
        resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        image,
        resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ],
    "test_tool_with_logging": [text("Logged.")],
    "test_logging_tool": [text("Logged.")],
    "test_tool_with_progress": [text("Progressed.")],
    "test_error_handling": [text("This tool intentionally returns an error for testing")],
    "json_schema_2020_12_tool": [text("Fine.")],
    "test_x_mcp_header": [text("Fine.")],
}

SCHEMAS = {
    "json_schema_2020_12_tool": SCHEMA_2020_12,
    "test_x_mcp_header": {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    },
}


properties = lambda **named: {"type": "object", "properties": named}
titled = lambda *pairs: [{"const": const, "title": title} for const, title in pairs]
OPTIONS = ["option1", "option2", "option3"]
TITLED = titled(("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option"))
NAME = {**properties(name={"type": "string"}), "required": ["name"]}
PROMPT = lambda words: {"messages": [{"role": "user", "content": text(words)}], "maxTokens": 100}
FORM = lambda words, schema=NAME: ("elicitation/create", {"message": words, "requestedSchema": schema})

# Tools that ask something first: what, and with what.
ASKING = {
    "test_sampling": [("sampling/createMessage", PROMPT("Test prompt for sampling"))],
    "test_elicitation": [
        FORM("Please provide your information", properties(username={"type": "string"}, email={"type": "string"}))
    ],
    "test_elicitation_sep1034_defaults": [
        FORM(
            "Please review and update the form fields with defaults",
            properties(
                name={"type": "string", "default": "John Doe"},
                age={"type": "integer", "default": 30},
                score={"type": "number", "default": 95.5},
                status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                verified={"type": "boolean", "default": True},
            ),
        )
    ],
    "test_elicitation_sep1330_enums": [
        FORM(
            "Please select options from the enum fields",
            properties(
                untitledSingle={"type": "string", "enum": OPTIONS},
                titledSingle={"type": "string", "oneOf": TITLED},
                legacyEnum={
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
                titledMulti={"type": "array", "items": {"anyOf": TITLED}},
            ),
        )
    ],
    "test_input_required_result_elicitation": [FORM("What is your name?")],
    "test_input_required_result_sampling": [
        ("sampling/createMessage", PROMPT("What is the capital of France?"))
    ],
    "test_input_required_result_list_roots": [("roots/list", {})],
    "test_input_required_result_request_state": [FORM("Please confirm")],
    "test_input_required_result_tampered_state": [FORM("Please confirm")],
    "test_input_required_result_multi_round": [FORM("Step 1: your name?"), FORM("Step 2: your colour?")],
}

writing = threading.Lock()
questions = {}


def send(message):
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def ask(method, params):
    id = f"ask-{len(questions)}"
    questions[id] = queue.Queue()
    send({"id": id, "method": method, "params": params})
    return questions[id].get()


def tell(method, params):
    send({"method": method, "params": params})


def call(params):
    name = params["name"]
    if name in ASKING:
        answers = [ask(*question) for question in ASKING[name]]
        return {"content": [text(f"Told: {json.dumps(answers)}; state-ok")]}
    if name not in CONTENT:
        return None
    if name in ("test_tool_with_logging", "test_logging_tool"):
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            tell("notifications/message", {"level": "info", "data": words})
            time.sleep(0.05)
    if name == "test_tool_with_progress":
        token = params.get("_meta", {}).get("progressToken")
        for progress in (0, 50, 100):
            if token is not None:
                tell("notifications/progress", {"progressToken": token, "progress": progress, "total": 100})
            time.sleep(0.05)
    return {"content": CONTENT[name], "isError": name == "test_error_handling"}


def tools():
    for name in [*CONTENT, *ASKING]:
        schema = SCHEMAS.get(name, NOTHING)
        yield {"name": name, "description": f"The suite's tool {name}.", "inputSchema": schema}


def answer(message):
    method, params, id = message["method"], message.get("params") or {}, message["id"]
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "conformance-tools", "version": "1.0.0"},
        }
    elif method in ("ping", "logging/setLevel"):
        result = {}
    elif method == "tools/list":
        result = {"tools": list(tools())}
    elif method == "tools/call":
        result = call(params)
        if result is None:
            send({"id": id, "error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}})
            return
    else:
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})
        return
    send({"id": id, "result": result})


for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        questions[message["id"]].put(message.get("result") or message.get("error"))
    elif message.get("id") is not None:
        threading.Thread(target=answer, args=(message,), daemon=True).start()
