#!/bin/sh
# One forward through an installed coapway, in a network namespace of its own:
#     unshare --net --pid --fork --kill-child forward.sh CONFIGURATION PROGRAM…
set -eu
# What the client says of the answer stands among what the proxies log.
exec 2>&1
configuration=$1
shift
ip link set lo up

"$@" serve --config "$configuration" &
proxy=$!
# Another one is an origin: it says of itself what it has.
"$@" serve --listen coap://127.0.0.1:5700 &
origin=$!

for port in 5683 5700; do
	until "$@" ping "coap://127.0.0.1:$port" --timeout 10s >/dev/null 2>&1; do
		kill -0 "$proxy"
		kill -0 "$origin"
		sleep 0.1
	done
done
"$@" get coap://127.0.0.1:5700/.well-known/core --proxy coap://127.0.0.1:5683 --verbose

kill -TERM "$proxy" "$origin"
wait "$proxy"
wait "$origin"
