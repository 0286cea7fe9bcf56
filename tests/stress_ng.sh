#!/bin/bash
# stress-ng's own checks as a judge: each stressor plain, then under nearfar, as root and with `--deny kernel-faults`. What passes plain must
# pass under nearfar: the same exit status and the same messages, work done, no process left behind, in about the same time.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOF'
tests/stress_ng.sh [OPTIONS] [STRESSOR...]     after `make build`; needs stress-ng; one stressor after the other, one instance each

  -t, --seconds N     seconds for each run (10)
  -m, --mode MODE     root, kernel-faults, both, or alternate: each stressor in one of them, in turn (both)
      --lazy          plain only what fails under nearfar: half the time, but what does not pass plain is not told
      --telling       the 30 that say most, instead of all of the classes memory, vm, os, scheduler, interrupt, pipe, filesystem
      --near SIZE     near (64M)
      --ballast MIB   memory that is held and looked at besides, where the stressor's own cannot be set to 3 times near (192)
      --logs DIR      keep what every run printed
      --list          print the stressors, and those left out with the reason, and run nothing

Prints a table and a last line of counts. Status 1 if something differs that the list in this file does not explain, 2 on bad usage.
EOF
}

seconds=10 mode=both lazy=no telling=no near=64M ballast=192 logs='' list=no
chosen=()
while [ $# -gt 0 ]; do
    case $1 in
        -t | --seconds) seconds=${2:?seconds}; shift ;;
        -m | --mode) mode=${2:?mode}; shift ;;
        --telling) telling=yes ;;
        --lazy) lazy=yes ;;
        --near) near=${2:?size}; shift ;;
        --ballast) ballast=${2:?MiB}; shift ;;
        --logs) logs=${2:?directory}; shift ;;
        --list) list=yes ;;
        -h | --help) usage; exit 0 ;;
        -*) usage >&2; exit 2 ;;
        *) chosen+=("$1") ;;
    esac
    shift
done
case $mode in both | alternate) modes=(root kernel-faults) ;; root | kernel-faults) modes=("$mode") ;; *) usage >&2; exit 2 ;; esac
[[ $seconds =~ ^[1-9][0-9]*$ && $ballast =~ ^[0-9]+$ ]] || { usage >&2; exit 2; }

stress=$(command -v stress-ng) || { echo "skipped: no stress-ng"; exit 0; }
nearfar=$(realpath "${NEARFAR_BIN:-${CARGO_TARGET_DIR:-target}/release/nearfar}")

# Those that say most about what nearfar stands in for: memory calls, ways to make processes, signals, pointers given to the kernel.
most_telling=(
    vm vm-rw vm-splice vm-segv vm-addr mmap mmapfork mremap mprotect madvise malloc stack mincore munmap msync numa
    fork vfork clone spawn exec daemon pthread futex sigsegv signest sigfd pipe splice aio
)

# What is left out: it can harm the machine or its other users, or takes all memory there is.
declare -A left_out=(
    [apparmor]="changes the machine's policy"
    [bad-ioctl]="ioctls on every device of the machine"
    [bigheap]="takes all memory there is; no bound of its own"
    [bind-mount]="mounts"
    [binderfs]="mounts"
    [clock]="sets the machine's clock"
    [cpu-online]="takes CPUs away"
    [dev]="opens every device of the machine"
    [dev-shm]="fills /dev/shm, which is memory"
    [efivar]="firmware variables"
    [forkheavy]="fills /tmp and leaves thousands of message queues behind, plain too"
    [hrtimers]="takes a CPU by real-time priority"
    [icmp-flood]="floods the network"
    [klog]="the machine's log"
    [kvm]="makes virtual machines"
    [loop]="loop devices"
    [memhotplug]="takes memory away"
    [mlockmany]="locks all memory there is; no bound of its own"
    [oom-pipe]="takes all memory there is"
    [opcode]="executes random instructions, and so random system calls"
    [pci]="the devices of the machine"
    [physpage]="physical memory"
    [plugin]="needs a plugin"
    [quota]="quotas of the machine's file systems"
    [ramfs]="mounts"
    [rawpkt]="floods the network"
    [rawudp]="floods the network"
    [reboot]="asks for a reboot"
    [resources]="takes all memory there is"
    [rtc]="sets the machine's clock"
    [softlockup]="takes all CPUs by real-time priority"
    [swap]="makes swap files"
    [sysbadaddr]="system calls with random arguments"
    [syscall]="system calls with random arguments"
    [sysfs]="reads and writes the machine's settings"
    [sysinval]="system calls with random arguments"
    [udp-flood]="floods the network"
    [umount]="mounts"
    [watchdog]="reboots the machine"
)

# Differences that are known, each with its reason (docs/reference/promises-and-limits.md): "STRESSOR" in both modes, or "STRESSOR/MODE".
declare -A explained=(
    [kcmp]="the pager's threads give a process a list of System V semaphore undos, which it compares"
    [mincore]="a page that it has unmapped may be taken by memory of nearfar's own"
    [rlimit]="ulimit -f lowered below the spill file while it runs"
    [vm-rw/kernel-faults]="process_vm_readv by another process ends at the first page that is in far; it ignores how much was read"
    [usersyscall]="it lets only the C library make system calls, and syscall(3) is nearfar's"
    [userfaultfd/root]="its child by clone(CLONE_VM) outlives the process that serves its memory, and is stopped (docs/reference/promises-and-limits.md)"
    [fsize]="ulimit -f lowered below the spill file while it runs"
)

# Options that give a stressor a footprint of about three times near. All others run beside held memory (see ballast).
footprint_of() {
    local mib=192
    [ "$ballast" = 0 ] || mib=$ballast
    case $1 in
        malloc) echo "--malloc-bytes $((mib / 16))M" ;; # each of many
        memfd | memrate | mmap | mremap | pagemove | shm | shm-sysv | vm | vm-rw | msync) echo "--$1-bytes ${mib}M" ;;
        mmapfork) echo "" ;;
        bsearch | heapsort | mergesort | qsort | shellsort | lsearch | hsearch) echo "" ;;
        copy-file) echo "--copy-file-bytes 192M" ;;
        fallocate | fiemap | hdd | iomix | readahead | sync-file) echo "--$1-bytes 64M" ;;
        *) echo "" ;;
    esac
}
holds_enough() { case $1 in memrate | mmap | mremap | pagemove | vm | vm-rw) return 0 ;; *) return 1 ;; esac; }

all_stressors() {
    local class
    for class in memory vm os scheduler interrupt pipe filesystem; do
        "$stress" --class "$class?" | sed 's/.*: //' | tr ' ' '\n'
    done | sed '/^$/d' | sort -u
}

if [ ${#chosen[@]} = 0 ]; then
    if [ $telling = yes ]; then chosen=("${most_telling[@]}"); else mapfile -t chosen < <(all_stressors); fi
fi
if [ $list = yes ]; then
    for name in "${chosen[@]}"; do echo "$name${left_out[$name]:+: left out: ${left_out[$name]}}"; done
    exit 0
fi

dir=$(mktemp -d /var/tmp/nearfar-stress.XXXXXX)
# Its own copy of stress-ng tells our processes from everybody else's.
cp "$stress" "$dir/stress-ng"
# (Through their threads: a process whose first thread has left has no program of its own any more.)
ours() { find /proc -maxdepth 4 -path '/proc/[0-9]*/task/[0-9]*/exe' -lname "$dir/stress-ng*" 2>/dev/null | cut -d/ -f3 | sort -u || true; }
sweep() { local pid; for pid in $(ours); do kill -KILL "$pid" 2>/dev/null || true; done; }
# shellcheck disable=SC2317
finish() { sweep; rm -rf "$dir" 2>/dev/null || true; }
trap finish EXIT
trap 'exit 130' INT TERM
logs=${logs:-$dir/logs}
mkdir -p "$logs" "$dir/far"

# Memory that the first process holds besides, so that it pages before the stressor does anything, and its children too. Looked at now and
# then by a thread of its own; a wrong byte ends the process by SIGABRT.
preload=''
if [ "$ballast" -gt 0 ]; then
    cat >"$dir/ballast.c" <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
static unsigned long *words, count;
static void look(void) { for (unsigned long at = 0; at < count; at += 509) if (words[at] != at * 0x9e3779b97f4a7c15) abort(); }
__attribute__((constructor)) static void hold(int argc, char **argv) {
    const char *want = getenv("STRESS_BALLAST"), *name = argc ? strrchr(argv[0], '/') : 0;
    if (!want || !*want || !name || strcmp(name, "/stress-ng")) return;
    count = strtoul(want, 0, 10) / sizeof *words;
    unsetenv("STRESS_BALLAST");
    words = mmap(0, count * sizeof *words, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED) abort();
    for (unsigned long at = 0; at < count; at++) words[at] = at * 0x9e3779b97f4a7c15;
}
__attribute__((destructor)) static void end(void) { look(); }
EOF
    if cc -O2 -shared -fPIC "$dir/ballast.c" -o "$dir/ballast.so" 2>/dev/null; then preload=$dir/ballast.so
    else echo "no C compiler: without ballast, few stressors will page"; fi
fi

# run LOG STRESSOR COMMAND...: sets $status, $took (ms), $left (processes that outlive the run)
run() {
    local log=$1 name=$2 start; shift 2
    local work=$dir/work held=''
    mkdir -p "$work"
    if [ -n "$preload" ] && ! holds_enough "$name"; then held=yes; fi
    local footprint; footprint=$(footprint_of "$name")
    start=$(date +%s%3N)
    status=0
    # shellcheck disable=SC2086
    STRESS_BALLAST=${held:+$((ballast << 20))} LD_PRELOAD=$preload timeout -k 5 $((seconds + 30)) "$@" "$dir/stress-ng" "--$name" 1 $footprint \
        --verify --metrics --timeout "$seconds" --temp-path "$work" </dev/null >"$log" 2>&1 || status=$?
    took=$(($(date +%s%3N) - start))
    left=0
    if [ -n "$(ours)" ]; then sleep 1; fi # those that are just ending
    left=$(ours | wc -l)
    sweep
    rm -rf "$work" 2>/dev/null || true
}

# What a run said that counts, without the numbers that differ from run to run.
messages() {
    grep -E '(fail|error|warn): |panicked|nearfar: |FAIL' "$1" | sed -E 's/\[[0-9]+\]/[]/g; s/0x[0-9a-f]+/0x/g; s/[0-9]+/N/g; s/^stress-ng: //' |
        grep -v -E 'metrics-check|bogo-op|WARNING: finished prematurely|mlockall has no effect' | sort -u || true
}
of_watchdog='goes on when that ends|has taken no turn for|is not stuck any more|no thread waits that long any more'
work_done() { awk -v name="$2" '$2 == "metrc:" && $4 == name { print $5; exit }' "$1"; }
skipped_by_itself() { grep -qE "skipped|not implemented|will be skipped|not supported" "$1"; }

# Runs $name under nearfar in all $ways and compares with the plain run: sets $cells, $notes, $bad and $excused.
judge() {
    local deny log done_here wrong new reason
    cells=() notes='' bad=0 excused=0
    for way in "${ways[@]}"; do
        deny=(); [ "$way" = kernel-faults ] && deny=(--deny kernel-faults)
        log=$logs/$name.$way
        run "$log" "$name" "$nearfar" run --quiet --near "$near" --far "$dir/far" --stats "$log.json" "${deny[@]}" --
        done_here=$(work_done "$log" "$name")
        wrong=''
        new=$(comm -13 <(messages "$logs/$name.plain") <(messages "$log"))
        # The watchdog speaks of what is slow, and of what goes on by itself.
        if [[ $new =~ $of_watchdog ]]; then notes+="$way: slow, said the watchdog. "; new=$(grep -vE "$of_watchdog" <<<"$new" || true); fi
        new=$(head -3 <<<"$new" | tr '\n' ';'); [ "$new" != ';' ] || new=''
        if [ "$status" = 86 ]; then wrong="stopped by nearfar"
        elif [ "$status" = 124 ] || [ "$status" = 137 ]; then wrong="hangs"
        elif [ "$status" != "$plain_status" ]; then wrong="status $status"
        elif [ -n "$new" ]; then wrong="messages"
        elif [ "$left" -gt "$plain_left" ]; then wrong="$left left behind"
        elif [ "${plain_work:-0}" != 0 ] && [ "${done_here:-0}" = 0 ]; then wrong="no work done"
        elif [ "$took" -gt $((plain_took + 10000)) ]; then wrong="took $((took / 1000)) s"
        fi
        if [ -n "$wrong" ]; then
            reason=${explained[$name]:-${explained[$name/$way]:-}}
            # A reason for another answer is none for a hang, a stop or something left behind.
            case $wrong in status* | messages) ;; *) reason='' ;; esac
            if [ -n "$reason" ]; then excused=1; cells+=("known"); notes+="$way: $wrong: $reason. "
            else bad=1; cells+=("DIFFERS"); notes+="$way: $wrong${new:+: $new} "; fi
        else
            cells+=("$(awk -v a="${done_here:-0}" -v b="${plain_work:-0}" 'BEGIN { if (b > 0) printf "ok %.2gx", a / b; else print "ok" }')")
            if ! grep -qE '"bytes_out": [1-9]' "$log.json" 2>/dev/null; then notes+="$way: not paged. "; fi
        fi
    done
}

printf '%-14s %-8s' stressor plain
if [ "$mode" = alternate ]; then printf ' %-28s' 'root or kernel-faults'; else printf ' %-14s' "${modes[@]}"; fi
printf ' %s\n' note
turn=0 passed=0 differ=0 known=0 skipped=0 away=0
for name in "${chosen[@]}"; do
    if [ -n "${left_out[$name]:-}" ]; then
        printf '%-14s %-8s %s\n' "$name" "-" "left out: ${left_out[$name]}"
        away=$((away + 1)); continue
    fi
    ways=("${modes[@]}")
    if [ "$mode" = alternate ]; then ways=("${modes[turn % 2]}"); turn=$((turn + 1)); fi
    if [ $lazy = yes ]; then
        : >"$logs/$name.plain"
        plain_status=0 plain_took=$((seconds * 1000)) plain_left=0 plain_work=0
        judge
    fi
    if [ $lazy = no ] || [ $bad = 1 ]; then
        run "$logs/$name.plain" "$name"
        plain_status=$status plain_took=$took plain_left=$left
        plain_work=$(work_done "$logs/$name.plain" "$name")
        why=''
        if [ "$status" = 124 ] || [ "$status" = 137 ]; then why="does not end plain"
        elif [ "$status" != 0 ]; then why="status $status plain: $(grep -oE '(skipped|fail|error).*' "$logs/$name.plain" | head -1 | cut -c1-90 || true)"
        elif skipped_by_itself "$logs/$name.plain" && [ "${plain_work:-0}" = 0 ]; then why="$(grep -oE '[^]]*(skipped|not implemented|not supported).*' "$logs/$name.plain" | head -1 | cut -c1-90)"
        fi
        if [ -n "$why" ]; then
            printf '%-14s %-8s %s\n' "$name" skipped "$why"
            skipped=$((skipped + 1)); continue
        fi
        judge
    fi
    if [ $bad = 1 ]; then differ=$((differ + 1)); elif [ $excused = 1 ]; then known=$((known + 1)); else passed=$((passed + 1)); fi
    printf '%-14s %-8s' "$name" "ok"
    if [ "$mode" = alternate ]; then printf ' %-13s %-14s' "$way" "${cells[0]}"; else printf ' %-14s' "${cells[@]}"; fi
    printf ' %s\n' "$notes"
done
echo "$passed as plain, $known differ as explained, $differ DIFFER, $skipped skipped since they do not pass plain, $away left out"
[ $differ = 0 ]
