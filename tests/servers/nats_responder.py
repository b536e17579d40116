"""An MCP server on NATS, written by hand on nats-py, for the tests of Yiem's NATS transport.

usage: nats_responder.py URL SUBJECT MODE [TOKEN]

It shares no code with Yiem: the envelope is built here field by field. Modes:
  plain        JSON-RPC as it is, the id echoed
  seeds        the envelope; payload in base64; fixed ids 1 and 2, as the seeds' servers answer
  seeds-object the envelope with few fields; payload as an object
  seeds-text   the envelope with more fields than known; payload as JSON text; an odd purpose
  method       JSON-RPC at SUBJECT.> ; says at which subject it was asked
  progress     three progress notifications on the reply inbox before the answer
  slow         answers after the milliseconds in the argument `ms`
  never        takes requests and never answers
  huge         tries to answer with two million bytes, which the client library refuses
  garbage      answers with bytes that are no JSON
  stray        bytes that are no JSON, and then the answer
  link         an envelope whose payload is a link
Prints `ready` once it is subscribed, and each cancellation that it hears of.
"""

import asyncio
import base64
import json
import sys

import nats

URL, SUBJECT, MODE = sys.argv[1:4]
TOKEN = sys.argv[4] if len(sys.argv) > 4 else None

TOOLS = [
    {
        "name": "echo",
        "label": "Echo (label)",
        "description": "Gives back what it is given.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {"name": "add", "title": "Add", "description": "a + b", "inputSchema": {"type": "object", "properties": {}}},
]


def say(*words):
    print(*words, flush=True)


def result_of(request, asked_at):
    method = request.get("method")
    if method == "server/discover":
        return {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }
    if method == "tools/list":
        # Two pages, the second ended as the seeds end theirs: with an empty cursor.
        if not request["params"].get("cursor"):
            return {"tools": TOOLS[:1], "nextCursor": "page-2"}
        return {"tools": TOOLS[1:], "nextCursor": ""}
    arguments = request["params"]["arguments"]
    if request["params"]["name"] == "add":
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}
    text = arguments.get("text", "")
    if MODE == "method":
        text = f"{asked_at}: {text}"
    return {"content": [{"type": "text", "text": text}], "isError": False}


def opened(data):
    message = json.loads(data)
    if "payloads" not in message:
        return message, None
    (payload,) = message["payloads"]
    assert payload["dataname"] == "payload" and payload["payload_type"] == "dictionary", payload
    assert payload["encoding"] == "base64" and payload["transport"] == "direct", payload
    body = base64.b64decode(payload["data"], validate=True)
    assert payload["size"] == len(body), payload
    return json.loads(body), message


def wrapped(answer, envelope):
    text = json.dumps(answer)
    if MODE == "seeds":
        body = text.encode()
        return {
            "correlation_id": envelope["correlation_id"],
            "msg_id": "7f6f0f5c-0000-4000-8000-000000000001",
            "timestamp": "2026-11-30T00:00:00.000",
            "send_to": "",
            "msg_purpose": "mcp_response",
            "sender_name": "julia-server",
            "sender_id": "server-1",
            "receiver_name": envelope["sender_name"],
            "receiver_id": envelope["sender_id"],
            "reply_to": "",
            "reply_to_msg_id": envelope["msg_id"],
            "broker_url": "",
            "metadata": {},
            "payloads": [
                {
                    "id": "p-1",
                    "dataname": "payload",
                    "payload_type": "dictionary",
                    "transport": "direct",
                    "encoding": "base64",
                    "size": len(body),
                    "data": base64.b64encode(body).decode(),
                    "metadata": {"payload_bytes": len(body)},
                }
            ],
        }
    if MODE == "seeds-object":
        return {"payloads": [{"dataname": "payload", "data": answer}]}
    return {
        "msg_purpose": "something_new",
        "schema_version": 9,
        "metadata": None,
        "payloads": [
            {"dataname": "note", "payload_type": "text", "data": "just a note"},
            {"dataname": "payload", "payload_type": "dictionary", "encoding": "json", "data": text, "checksum": "?"},
        ],
    }


async def main():
    client = await nats.connect(URL, token=TOKEN, max_reconnect_attempts=-1, reconnect_time_wait=0.2)
    running = set()

    async def answer(message):
        request, envelope = opened(message.data)
        method = request.get("method")
        if method == "notifications/cancelled":
            say("cancelled", request["params"]["requestId"], "reply", message.reply)
            return
        say("asked", method)
        if MODE == "never":
            return
        if MODE == "huge" and method == "tools/call":
            try:
                await message.respond(b"x" * 2_000_000)
            except Exception as error:
                say("refused by the library:", error)
            return
        if MODE in ("garbage", "stray") and method == "tools/call":
            await message.respond(b"\xff\xfeit broke")
            if MODE == "garbage":
                return
        if MODE == "slow" and method == "tools/call":
            await asyncio.sleep(request["params"]["arguments"]["ms"] / 1000)
        if MODE == "progress" and method == "tools/call":
            token = request["params"]["_meta"]["progressToken"]
            for step in (1, 2, 3):
                note = {
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"},
                }
                await message.respond(json.dumps(note).encode())
        if MODE == "link":
            body = {"payloads": [{"dataname": "payload", "transport": "link", "data": "http://127.0.0.1:9/file"}]}
            await message.respond(json.dumps(body).encode())
            return
        reply = {"jsonrpc": "2.0", "id": request.get("id"), "result": result_of(request, message.subject)}
        if MODE.startswith("seeds"):
            reply["id"] = 1 if method == "tools/list" else 2
            reply = wrapped(reply, envelope)
        await message.respond(json.dumps(reply).encode())

    async def take(message):
        # Each request in a task of its own, so that slow ones do not hold up the others.
        task = asyncio.create_task(answer(message))
        running.add(task)
        task.add_done_callback(running.discard)

    await client.subscribe(SUBJECT + (".>" if MODE == "method" else ""), cb=take)
    await client.flush()
    say("ready")
    await asyncio.Event().wait()


asyncio.run(main())
