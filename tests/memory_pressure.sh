#!/bin/bash
# Programs that check their data, under nearfar, while memory is nearly full and the kernel moves pages about. As root; takes some
# minutes of a machine for itself. On Linux 6.18 this lost a page in one of about ten runs, until Uffd::move_pages learnt not to
# trust EEXIST (docs/explanation/traps.md); the quick test of that is in crates/sys/src/uffd.rs.
#   tests/memory_pressure.sh [ROUNDS]     after `make build`; needs gcc and stress-ng
set -u
cd "$(dirname "$0")/.."
dir=$(mktemp -d /var/tmp/nearfar-pressure.XXXXXX)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
gcc -O2 -pthread -I tests/programs tests/programs/fork_parent_writes.c -o "$dir/forks" || exit 2
gcc -O2 -pthread -I tests/programs tests/programs/verify_mix.c -o "$dir/mix" -lm || exit 2
free_mib=$(awk '/MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
dd if=/dev/zero of="$dir/cached" bs=1M count=$((free_mib / 3)) 2>/dev/null
stress-ng --vm 1 --vm-bytes $((free_mib * 3 / 5))m --vm-keep --vm-method zero-one --quiet &
while true; do echo 1 >/proc/sys/vm/compact_memory; cat "$dir/cached" >/dev/null; done &
bad=0
for round in $(seq "${1:-20}"); do
    for program in "$dir/forks" "$dir/mix bytes=192M threads=4 seconds=5 seed=$round"; do
        # shellcheck disable=SC2086
        timeout 120 target/release/nearfar run -q --near 64M --far "$dir" -- $program >"$dir/out" 2>&1
        status=$?
        [ $status = 0 ] || { bad=$((bad + 1)); echo "round $round, status $status:"; tail -3 "$dir/out"; }
    done
done
echo "$bad bad runs"
[ $bad = 0 ]
