#!/bin/bash
# redis_digest.sh KEYS [COMMAND...]: a Redis server, started by COMMAND if there is one, that is loaded, forks to save itself while keys change, reads
# back what it saved, and tells digests of its data. Prints the same however it was started.
set -u
keys=$1
shift
dir=$(mktemp -d)
trap 'kill -KILL $server 2>/dev/null; rm -rf "$dir"' EXIT
"$@" redis-server --port 0 --unixsocket "$dir/socket" --save "" --dir "$dir" --enable-debug-command yes --loglevel warning >"$dir/log" 2>"$dir/errors" &
server=$!
ask() { redis-cli -s "$dir/socket" "$@"; }
for _ in $(seq 200); do ask ping >/dev/null 2>&1 && break; sleep 0.1; done
ask debug populate "$keys" key 500
ask debug digest
ask bgsave
while ask info persistence | grep -q 'rdb_bgsave_in_progress:1'; do ask set changed "$RANDOM" >/dev/null; sleep 0.05; done
ask info persistence | grep rdb_last_bgsave_status | tr -d '\r'
ask del changed >/dev/null
ask debug digest
ask debug reload
ask debug digest
ask shutdown nosave
wait $server
echo "status $?"
cat "$dir/errors" >&2
