"""An MCP server over stdio with the tools that the conformance suite's server scenarios call.

Written by hand on the standard library, in the revision of 2025-11-25: what the suite sees of the newer one
comes from whatever stands in front of it.
"""

import json
import sys
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


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tell(method, params):
    send({"method": method, "params": params})


def call(params):
    name = params["name"]
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
    for name in CONTENT:
        schema = SCHEMAS.get(name, NOTHING)
        yield {"name": name, "description": f"The suite's tool {name}.", "inputSchema": schema}


for line in sys.stdin:
    message = json.loads(line)
    method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
    if id is None or method is None:
        continue
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
            continue
    else:
        send({"id": id, "error": {"code": -32601, "message": "Method not found"}})
        continue
    send({"id": id, "result": result})
