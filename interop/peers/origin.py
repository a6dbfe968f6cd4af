"""An aiocoap origin server that can be asked for any method, code, size and delay.

    origin.py PORT ADDRESS [ADDRESS...]

Resources, each for every method:
    /echo          the request's payload and Content-Format, with the code usual for the method
    /size/N        N bytes of text, with the code usual for the method
    /status/C.DD   the response code C.DD; 2.03 carries an ETag and no payload
    /slow/MS       as /echo, MS milliseconds later (aiocoap sends an empty ACK after 100 ms)

Each request is remembered under its Uri-Query `key=...`. A line {"seen": KEY} on standard input prints
the list of requests remembered under KEY; the end of standard input ends the server.
"""

import asyncio
import json
import sys

import aiocoap
import aiocoap.resource

USUAL_CODE = {
    "GET": aiocoap.CONTENT,
    "FETCH": aiocoap.CONTENT,
    "POST": aiocoap.CHANGED,
    "PUT": aiocoap.CHANGED,
    "PATCH": aiocoap.CHANGED,
    "iPATCH": aiocoap.CHANGED,
    "DELETE": aiocoap.DELETED,
}


def fingerprint(payload):
    """64-bit FNV-1a, which the Rust side computes too."""
    value = 0xCBF29CE484222325
    for byte in payload:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def text_of(size):
    return bytes(ord("a") + index % 26 for index in range(size))


def code_of(text):
    family, detail = text.split(".")
    return aiocoap.Code(int(family) << 5 | int(detail))


class Origin(aiocoap.resource.Resource):
    def __init__(self):
        super().__init__()
        self.seen = {}

    async def needs_blockwise_assembly(self, request):
        return False

    async def render(self, request):
        self.remember(request)
        method = str(request.code)
        path = request.opt.uri_path
        if path[:1] == ("slow",):
            await asyncio.sleep(int(path[1]) / 1000)
        if path[:1] in (("slow",), ("echo",)):
            response = aiocoap.Message(code=USUAL_CODE[method], payload=request.payload)
            response.opt.content_format = request.opt.content_format
        elif path[:1] == ("size",):
            response = aiocoap.Message(code=USUAL_CODE[method], payload=text_of(int(path[1])))
        elif path == ("status", "2.03"):
            response = aiocoap.Message(code=aiocoap.VALID)
            response.opt.etag = b"origin"
        elif path[:1] == ("status",):
            response = aiocoap.Message(code=code_of(path[1]), payload=f"status {path[1]}".encode())
        else:
            response = aiocoap.Message(code=aiocoap.NOT_FOUND, payload=b"no such resource")
        return response

    def remember(self, request):
        record = {
            "method": str(request.code),
            "type": str(request.mtype),
            "path": list(request.opt.uri_path),
            "query": list(request.opt.uri_query),
            "content_format": request.opt.content_format,
            "length": len(request.payload),
            "fingerprint": fingerprint(request.payload),
            "options": [[int(option.number), option.encode().hex()] for option in request.opt.option_list()],
        }
        for query in request.opt.uri_query:
            if query.startswith("key="):
                self.seen.setdefault(query[4:], []).append(record)


async def main(port, addresses):
    origin = Origin()
    contexts = [
        await aiocoap.Context.create_server_context(origin, bind=(address, port), transports=["udp6"])
        for address in addresses
    ]
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(origin.seen.get(json.loads(line)["seen"], [])), flush=True)
    for context in contexts:
        await context.shutdown()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
