"""Raw requests on nats-py with JSON-RPC written by hand, for the tests of Yiem's gateway.

usage: nats_raw_request.py URL SUBJECT BODY [plain|envelope]

Prints the answer's JSON-RPC message on one line.
"""

import asyncio
import base64
import json
import sys

import nats

URL, SUBJECT, BODY = sys.argv[1:4]
FORM = sys.argv[4] if len(sys.argv) > 4 else "plain"


async def main():
    client = await nats.connect(URL)
    body = BODY.encode()
    if FORM == "envelope":
        payload = {"dataname": "payload", "payload_type": "dictionary", "encoding": "base64"}
        payload["data"] = base64.b64encode(body).decode()
        envelope = {"msg_id": "m-1", "correlation_id": "c-1", "sender_id": "julia", "payloads": [payload]}
        body = json.dumps(envelope).encode()
    reply = await client.request(SUBJECT, body, timeout=20)
    answer = json.loads(reply.data)
    if FORM == "envelope":
        assert answer["reply_to_msg_id"] == "m-1" and answer["correlation_id"] == "c-1", answer
        assert answer["receiver_id"] == "julia", answer
        answer = json.loads(base64.b64decode(answer["payloads"][0]["data"]))
    print(json.dumps(answer), flush=True)
    await client.close()


asyncio.run(main())
