"""An aiocoap client: one JSON request a line on standard input, one JSON result a line on standard output.

Request:  {"id", "method", "uri", "confirmable", "payload" hex, "timeout" seconds,
           "proxy_uri" | "proxy_scheme": "coap://HOST:PORT" of the proxy and how to ask it, or neither,
           "content_format": number or null, "options": [[number, hex], ...]}
Result:   {"id", "code" "2.05", "type", "payload" hex, "content_format", "options": [[number, hex], ...]}
          or {"id", "error"}

Requests run side by side; results come in the order in which they end. The end of standard input ends it.
"""

import asyncio
import json
import sys

import aiocoap
from aiocoap.numbers import OptionNumber
from aiocoap.optiontypes import OpaqueOption
from aiocoap.proxy.client import ProxyForwarder

METHODS = ("get", "post", "put", "delete", "fetch", "patch", "ipatch")


def message_of(request):
    tuning = aiocoap.Reliable if request["confirmable"] else aiocoap.Unreliable
    message = aiocoap.Message(
        code=aiocoap.Code(1 + METHODS.index(request["method"])),
        payload=bytes.fromhex(request["payload"]),
        transport_tuning=tuning(),
    )
    if request.get("proxy_uri"):
        message.opt.proxy_uri = request["uri"]
        message.unresolved_remote = request["proxy_uri"].removeprefix("coap://")
    else:
        message.set_request_uri(request["uri"])
    if request.get("content_format") is not None:
        message.opt.content_format = request["content_format"]
    for number, value in request.get("options", []):
        message.opt.add_option(OpaqueOption(OptionNumber(number), bytes.fromhex(value)))
    return message


async def answer_to(request, context):
    try:
        requester = ProxyForwarder(request["proxy_scheme"], context) if request.get("proxy_scheme") else context
        pending = requester.request(message_of(request))
        response = await asyncio.wait_for(pending.response, request["timeout"])
    except Exception as error:
        return {"id": request["id"], "error": f"{type(error).__name__}: {error}"}
    return {
        "id": request["id"],
        "code": response.code.dotted,
        "type": str(response.mtype),
        "payload": response.payload.hex(),
        "content_format": response.opt.content_format,
        "options": [[int(option.number), option.encode().hex()] for option in response.opt.option_list()],
    }


async def report(request, context):
    print(json.dumps(await answer_to(request, context)), flush=True)


async def main():
    context = await aiocoap.Context.create_client_context(transports=["udp6"])
    loop = asyncio.get_running_loop()
    running = set()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        task = asyncio.create_task(report(json.loads(line), context))
        running.add(task)
        task.add_done_callback(running.discard)
    await context.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
