# shellcheck shell=bash
# Sourced: runs commands side by side, in lanes.
#
#   lane NAME COMMAND...    begins a command
#   lane_ends NAME          waits for one; fails if it has failed
#   lanes_end               waits for all, and prints which tests were skipped; fails if one has failed,
#                           and names it and what failed in it
#
# What a lane has written is printed whole when it ends, and what it has taken of the processors.
# Meanwhile the last line of each is printed once in a minute.
#
# A signal that ends the script ends the lanes, and prints the last lines of those that
# have not ended.
lane_logs=$(mktemp -d)
declare -A lane_names=() lane_starts=()
lanes_failed=()
lanes_skipped=
lane_watch=

lane() {
    local name=$1
    shift
    echo "== $name: begins; what it writes follows when it ends"
    # A process group of its own, which can be ended as a whole, and whose programs do not ignore
    # the keys of the terminal.
    set -m
    {
        TIMEFORMAT="== of processors %U s and in the kernel %S s"
        time "$@"
    } >"$lane_logs/$name" 2>&1 </dev/null &
    set +m
    lane_names[$!]=$name
    lane_starts[$!]=$SECONDS
}

# The last line of each lane that has not ended: its log is removed when it was printed.
lanes_watch() {
    local log
    while sleep 60; do
        for log in "$lane_logs"/*; do
            [ ! -f "$log" ] || echo "== ${log##*/}, after $SECONDS s: $(tail -n 1 "$log" | cut -c1-100)"
        done
    done
}

# Waits for whichever ends next, and prints its output.
lane_next() {
    local process status=0
    if [ -z "$lane_watch" ]; then
        set -m
        lanes_watch &
        set +m
        lane_watch=$!
    fi
    wait -n -p process "${!lane_names[@]}" 2>/dev/null || status=$?
    if [ -z "${process-}" ]; then
        # All that are left had ended before; only a wait for one by its number knows how.
        process=${!lane_names[*]} process=${process%% *} status=0
        wait "$process" || status=$?
    fi
    local name=${lane_names[$process]} seconds=$((SECONDS - lane_starts[$process]))
    unset "lane_names[$process]"
    echo "== $name: its output"
    cat "$lane_logs/$name"
    lanes_skipped+=$(grep -a '^SKIPPED' "$lane_logs/$name" || true)$'\n'
    if [ "$status" -eq 0 ]; then
        rm "$lane_logs/$name"
        echo "== $name: passed after $seconds s"
    else
        # Not where lanes_watch looks.
        mkdir -p "$lane_logs/failed"
        mv "$lane_logs/$name" "$lane_logs/failed"
        echo "== $name: FAILED with status $status after $seconds s"
        lanes_failed+=("$name")
    fi
}

lane_ends() {
    while [[ " ${lane_names[*]} " == *" $1 "* ]]; do lane_next; done
    [[ " ${lanes_failed[*]} " != *" $1 "* ]]
}

lanes_end() {
    while [ ${#lane_names[@]} -ne 0 ]; do lane_next; done
    lanes_watch_end
    "${BASH_SOURCE[0]%/*}/skipped.sh" - <<<"$lanes_skipped"
    if [ ${#lanes_failed[@]} -ne 0 ]; then
        lanes_failures
        echo "== failed: ${lanes_failed[*]}" >&2
        return 1
    fi
}

# The failures once more, in few lines, at the end: what is kept of a long output is often its end.
# A panic names its test, and the line after it says what was wrong; pytest and compilers have one
# line each.
lanes_failures() {
    local name
    for name in "${lanes_failed[@]}"; do
        echo "== $name: what failed"
        grep -aE -A1 "^thread '.*panicked at |^FAILED |^error|^test .* FAILED$" "$lane_logs/failed/$name" |
            grep -avE '^(--)?$|^note: ' | cut -c1-140 | tail -n 12 || true
    done
}

lanes_watch_end() {
    [ -z "$lane_watch" ] || kill -TERM -- "-$lane_watch" 2>/dev/null || true
    lane_watch=
}

lanes_clean() {
    local process
    lanes_watch_end
    for process in "${!lane_names[@]}"; do
        kill -TERM -- "-$process" 2>/dev/null || true
        echo "== ${lane_names[$process]}: ended early; its last lines"
        tail -n 50 "$lane_logs/${lane_names[$process]}" || true
    done
    rm -rf "$lane_logs"
}
trap lanes_clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
