#!/bin/bash
# The rows of `nearfar probe` against plain C programs of the same pattern, in turn (A B A B ...), on a quiet machine: triad within 3 %
# with the same kind of store, latency within 5 %, arithmetic at 95 % or more of clock x width x ports as measured.
#   tests/probe_against_c.sh [ROUNDS]     needs cc with OpenMP; some minutes
set -eu
cd "$(dirname "$0")/.."
rounds=${1:-5}
cargo build --release --package nearfar-kernels --example probe_row
row=${CARGO_TARGET_DIR:-target}/release/examples/probe_row
dir=$(mktemp -d /var/tmp/nearfar-probe.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cc -O3 -march=native -fopenmp crates/kernels/reference/triad.c -o "$dir/triad"
cc -O2 crates/kernels/reference/chase.c -o "$dir/chase"
export OMP_PROC_BIND=true
failed=0

# compare NAME PERCENT "OURS" "THEIRS": both print one number
compare() {
    : >"$dir/ours"; : >"$dir/theirs"
    for _ in $(seq "$rounds"); do
        $3 >>"$dir/ours" 2>"$dir/said"
        $4 >>"$dir/theirs"
    done
    ours=$(sort -g "$dir/ours" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    theirs=$(sort -g "$dir/theirs" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
    awk -v name="$1" -v most="$2" -v ours="$ours" -v theirs="$theirs" 'BEGIN {
        off = 100 * (ours / theirs - 1)
        bad = off > most || off < -most
        printf "%-28s nearfar %.4g, C %.4g: %+.1f %% (at most %s) %s\n", name, ours, theirs, off, most, bad ? "FAILED" : "ok"
        exit bad }' || failed=1
}

bytes=$((192 << 20))
for pages in small huge; do
    for stores in ordinary streaming; do
        compare "triad, $stores, $pages" 3 "$row triad $bytes 1 $stores $pages" "$dir/triad $bytes 1 $stores $pages"
    done
    for order in local random; do
        compare "chase, $order, $pages" 5 "$row chase $((1 << 30)) 1 $order $pages" "taskset -c 0 $dir/chase $((1 << 30)) 131072 $order $pages"
    done
done
# Per clock, an instruction stream keeps a whole number of ports busy: the nearest whole number of vectors is what the core can do.
"$row" roofs 3 | tee "$dir/roofs"
awk '$4 !~ /Gemm/ {
    lanes = $3 == "Scalar" ? 1 : ($3 == "Sse2" || $3 == "Neon") ? 2 : $3 == "Avx2" ? 4 : 8
    if ($2 == "F32" && lanes > 1) lanes *= 2
    each = $4 == "Fma:" ? 2 : 1
    for (i = 1; i < NF; i++) if ($i == "=") ports = $(i + 1) / lanes / each
    whole = int(ports + 0.5)
    if (whole < 1 || ports < 0.95 * whole) { print "BELOW 95 %: " $0; bad = 1 }
} END { exit bad }' "$dir/roofs" || failed=1
exit $failed
