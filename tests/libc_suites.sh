#!/bin/bash
# The C library's own tests as a judge: those of malloc, threads, processes, signals and memory calls, plain, then under nearfar with the
# process paging, as root and with `--deny kernel-faults`. What passes plain must end with the same status under nearfar.
# Their source is not ours: unpack it yourself (`apt-get source glibc`, the version that is installed).
set -euo pipefail
self=$(realpath "$0")
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
    cat <<'EOF'
tests/libc_suites.sh [OPTIONS] DIR [PATTERN...]     DIR: unpacked glibc source; after `make build`; needs gcc

PATTERN chooses tests by path (malloc/*, *fork*); without one: the groups named in this file.

  -m, --mode MODE     root, kernel-faults or both (both)
      --near SIZE     near (16M)
      --ballast MIB   memory that is held and looked at besides, so that the process pages (48); 0: only the hooks are tried
      --work DIR      where tests are built and logs kept (a temporary directory)
  -j, --jobs N        tests at a time (1); most of them sleep

Prints a table and a last line of counts. Status 1 if something differs that the list in this file does not explain, 2 on bad usage.
EOF
}

mode=both near=16M ballast=48 work='' jobs=1 one=''
words=()
while [ $# -gt 0 ]; do
    case $1 in
        -m | --mode) mode=${2:?mode}; shift ;;
        --near) near=${2:?size}; shift ;;
        --ballast) ballast=${2:?MiB}; shift ;;
        --work) work=${2:?directory}; shift ;;
        -j | --jobs) jobs=${2:?number}; shift ;;
        --one) one=${2:?test}; shift ;; # for ourselves, see the end
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; exit 2 ;;
        *) words+=("$1") ;;
    esac
    shift
done
case $mode in both) modes=(root kernel-faults) ;; root | kernel-faults) modes=("$mode") ;; *) usage >&2; exit 2 ;; esac
[ ${#words[@]} -gt 0 ] && [ -f "${words[0]}/support/test-driver.c" ] || { usage >&2; exit 2; }
source=$(realpath "${words[0]}")
patterns=("${words[@]:1}")
[ ${#patterns[@]} -gt 0 ] || patterns=(
    'malloc/tst-*' 'nptl/tst-*' 'sysdeps/pthread/tst-*' 'signal/tst*' 'sysdeps/unix/sysv/linux/tst-*' 'misc/tst-m*' 'misc/tst-p*' 'rt/tst-*'
    'posix/tst-*fork*' 'posix/tst-*spawn*' 'posix/tst-*exec*' 'posix/tst-*wait*' 'posix/tst-pause*' 'stdlib/tst-system' 'stdlib/tst-*env*'
    'stdlib/tst-makecontext*' 'stdlib/tst-setcontext*' 'stdlib/tst-swapcontext*' 'libio/tst-popen*' 'setjmp/tst-*' 'debug/tst-*longjmp*'
    'io/tst-fcntl*' 'io/tst-copy_file_range*' 'io/tst-closefrom*' 'io/tst-close_range*' 'io/tst-p*' 'socket/tst-*' 'login/tst-*pty*' 'dlfcn/tst*'
)
nearfar=$(realpath "${NEARFAR_BIN:-${CARGO_TARGET_DIR:-$root/target}/release/nearfar}")

# Left out: it harms the machine or tells nothing here.
declare -A left_out=(
    [nptl/tst-dlsym1]="needs the build tree"
)

# Known differences, each with its reason (docs/reference/promises-and-limits.md): "TEST" in both modes, or "TEST/MODE".
own_heap="it looks into the C library's own heap, in the place of which is nearfar's"
one_key="nearfar has one of the 1024 keys for data of threads"
own_threads="nearfar's threads are threads of the process"
ten_ms="the test signals a child 10 ms after its fork, and hangs when it does not wait by then: plain too, without these 10 ms"
declare -A explained=(
    [malloc/tst-mallinfo2]=$own_heap
    [malloc/tst-malloc-backtrace]=$own_heap
    [malloc/tst-malloc-tcache-leak]=$own_heap
    [malloc/tst-dynarray-fail]="address space is taken in larger pieces: small mallocs fail earlier under RLIMIT_AS"
    [sysdeps/unix/sysv/linux/tst-epoll]=$ten_ms
    [sysdeps/unix/sysv/linux/tst-epoll-time64]=$ten_ms
    [posix/tst-wait3]="$own_threads, which stop a moment later"
    [posix/tst-wait3-time64]="$own_threads, which stop a moment later"
    [posix/tst-wait4]="$own_threads, which stop a moment later"
    [posix/tst-wait4-time64]="$own_threads, which stop a moment later"
    [malloc/tst-safe-linking]=$own_heap
    [malloc/tst-tcfree1]=$own_heap
    [malloc/tst-tcfree2]=$own_heap
    [sysdeps/pthread/tst-key1]=$one_key
    [sysdeps/pthread/tst-key4]=$one_key
    [sysdeps/pthread/tst-tss-basic]=$one_key
    [sysdeps/pthread/tst-pthread_cancel-exited]=$own_threads
    [sysdeps/unix/sysv/linux/tst-getcwd-smallbuff]="$own_threads: unshare(CLONE_NEWUSER) wants only one"
    [sysdeps/pthread/tst-stack1]="stacks of threads in managed memory are replaced"
    [nptl/tst-context1/kernel-faults]="a mask that blocks SIGSYS, by setcontext"
    [nptl/tst-cancel17/kernel-faults]="POSIX AIO is done at once"
    [nptl/tst-cancelx17/kernel-faults]="POSIX AIO is done at once"
)

if [ -z "$work" ]; then
    work=$(mktemp -d /var/tmp/nearfar-libc.XXXXXX)
    trap 'rm -rf "$work"' EXIT
fi
mkdir -p "$work/shim" "$work/objects" "$work/tests" "$work/logs"
work=$(realpath "$work")

# --- One test: built, run plain and under nearfar; one line of the table in $work/logs/NAME.row.
flags=(-O2 -g -std=gnu11 -w -include "$work/shim/shim.h" -DTIMEOUTFACTOR=1 -I"$work/shim" -I"$source/support")
for after in nptl sysdeps/pthread sysdeps/nptl sysdeps/x86_64/nptl sysdeps/x86_64 sysdeps/x86 sysdeps/generic posix malloc; do flags+=(-idirafter "$source/$after"); done

run_plain() { # LOG COMMAND...
    local log=$1; shift
    status=0
    (cd "$work/tests" && HELD=$([ "$ballast" = 0 ] || echo $((ballast << 20))) LD_PRELOAD=$preload TIMEOUTFACTOR=1 \
        setsid timeout -k 5 60 "$@") </dev/null >"$log" 2>&1 || status=$?
}

if [ -n "$one" ]; then
    name=$one flat=$(tr / _ <<<"$one") row=$work/logs/$(tr / _ <<<"$one").row
    preload=''; [ "$ballast" = 0 ] || preload=$work/ballast.so
    say() { printf '%-46s %-8s %s\n' "$name" "$1" "$2" >"$row"; exit 0; }
    [ -z "${left_out[$name]:-}" ] || say - "left out: ${left_out[$name]}"
    program=$work/tests/$flat
    if [ ! -x "$program" ]; then
        gcc "${flags[@]}" "$source/$name.c" -o "$program" "$work/libsupport.a" -lpthread -lm -lrt -lanl 2>"$work/logs/$flat.build" ||
            say - "does not build alone: $(grep -m1 -oE "(error:|undefined reference).*" "$work/logs/$flat.build" | cut -c1-90)"
    fi
    # Some tests run themselves, with these arguments.
    run_plain "$work/logs/$flat.plain" "$program"
    case $status in 0) ;; 77) say skipped "unsupported, says the test" ;; *) say skipped "status $status plain: $(tail -1 "$work/logs/$flat.plain" | cut -c1-90)" ;; esac
    cells='' notes='' bad='' excused=''
    for way in "${modes[@]}"; do
        deny=(); [ "$way" = kernel-faults ] && deny=(--deny kernel-faults)
        log=$work/logs/$flat.$way
        run_plain "$log" "$nearfar" run --quiet --near "$near" --far /var/tmp --stats "$log.json" "${deny[@]}" -- "$program"
        if [ "$status" = 0 ]; then
            cells+=$(printf ' %-14s' ok)
            [ "$ballast" = 0 ] || grep -qE '"bytes_out": [1-9]' "$log.json" 2>/dev/null || notes+="$way: not paged. "
        else
            reason=${explained[$name]:-${explained[$name/$way]:-}}
            case $status in 86 | 124 | 137) reason='' ;; esac # a stop and a hang have no excuse
            if [ -n "$reason" ]; then excused=1; cells+=$(printf ' %-14s' known); notes+="$way: status $status: $reason. "
            else bad=1; cells+=$(printf ' %-14s' DIFFERS); notes+="$way: status $status: $(grep -aE 'error|nearfar|rror:' "$log" | head -1 | cut -c1-110 || true) "; fi
        fi
    done
    printf '%-46s %-8s%s %s\n' "$name" ok "$cells" "$notes" >"$row"
    exit 0
fi

# --- What the tests stand on: a few headers of the source, and its support library as far as it builds without the library's own build tree.
cat >"$work/shim/shim.h" <<'EOF'
#define _GNU_SOURCE 1
#include <errno.h>
#include <limits.h>
#define __set_errno(e) (errno = (e))
#define attribute_hidden
#define libc_hidden_proto(...)
#define libc_hidden_def(...)
#define libc_hidden_weak(...)
EOF
: >"$work/shim/config.h"; : >"$work/shim/libc-config.h"
for header in libc-diag array_length libc-pointer-arith intprops libc-misc scratch_buffer file_change_detection; do
    [ ! -f "$source/include/$header.h" ] || ln -sf "$source/include/$header.h" "$work/shim/"
done
ln -sf "$source/sysdeps/x86_64/stackinfo.h" "$work/shim/"
for name in support malloc nptl posix sysdeps elf test-skeleton.c; do ln -sfn "$source/$name" "$work/shim/$name"; done
paths=()
for path in SRCDIR OBJDIR INSTDIR LIBDIR BINDIR SBINDIR ROOTSBINDIR COMPLOCALEDIR SLIBDIR SYSCONFDIR; do paths+=("-D${path}_PATH=\"$source\""); done
paths+=('-DOBJDIR_ELF_LDSO_PATH="/lib64/ld-linux-x86-64.so.2"')
if [ ! -f "$work/libsupport.a" ]; then
    for file in "$source"/support/*.c "$source"/malloc/{scratch_buffer_*,dynarray*}.c; do
        name=$(basename "$file" .c)
        case $name in tst-* | *-container | test-driver | test-run-command | links-dso* | README*) continue ;; esac
        gcc "${flags[@]}" "${paths[@]}" -c "$file" -o "$work/objects/$name.o" 2>"$work/objects/$name.said" || true
    done
    ar rc "$work/libsupport.a" "$work"/objects/*.o
fi
cat >"$work/ballast.c" <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static unsigned long *words, count;
static void look(void) { for (unsigned long at = 0; at < count; at += 509) if (words[at] != at * 0x9e3779b97f4a7c15) abort(); }
__attribute__((constructor)) static void hold(int argc, char **argv) {
    const char *want = getenv("HELD"), *name = argc ? strstr(argv[0], "/tests/") : 0;
    if (!want || !*want || !name) return;
    count = strtoul(want, 0, 10) / sizeof *words;
    unsetenv("HELD");
    words = mmap(0, count * sizeof *words, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) abort();
    for (unsigned long at = 0; at < count; at++) words[at] = at * 0x9e3779b97f4a7c15;
}
__attribute__((destructor)) static void end(void) { look(); }
EOF
gcc -O2 -shared -fPIC "$work/ballast.c" -o "$work/ballast.so"

cd "$source"
tests=$(for pattern in "${patterns[@]}"; do
    # shellcheck disable=SC2086
    for file in $pattern $pattern.c; do file=${file%.c}; if [ -f "$file.c" ]; then echo "$file"; fi; done
done | awk '!seen[$0]++')
[ -n "$tests" ] || { echo "no such test in $source" >&2; exit 2; }
cd "$root"
rm -f "$work"/logs/*.row
printf '%-46s %-8s' test plain; printf ' %-14s' "${modes[@]}"; echo ' note'
xargs -P "$jobs" -I{} bash -c 'bash "$0" --one "$1" "${@:3}" || echo "$1: the script itself failed" >&2; cat "$2/logs/$(tr / _ <<<"$1").row"' \
    "$self" {} "$work" --mode "$mode" --near "$near" --ballast "$ballast" --work "$work" "$source" <<<"$tests"
awk '/ DIFFERS/ { differ++; next } / known / { known++; next } / left out: / { out++; next } / does not build alone/ { unbuilt++; next }
    $2 == "skipped" { skipped++; next } { same++ }
    END { printf "%d as plain, %d differ as explained, %d DIFFER, %d skipped since they do not pass plain, %d do not build alone, %d left out\n",
        same, known, differ, skipped, unbuilt, out; exit differ > 0 }' "$work"/logs/*.row
