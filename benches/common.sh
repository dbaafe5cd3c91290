# Sourced by each run.sh, after it has set `name` (of the measurement, for messages) and `folder`
# (below target/bench, may be empty). Sets root, stage, build and raw, and empties raw.
#
# LAPI_STAGE names the installed library (default target/stage), BENCH_BUILD the folder for programs
# and raw results (default target/bench or a folder of it).
# shellcheck shell=sh disable=SC2034,SC2154

here=$(cd "$(dirname "$0")" && pwd)
root=${here%/benches*}
stage=${LAPI_STAGE:-$root/target/stage}
build=${BENCH_BUILD:-$root/target/bench${folder:+/$folder}}
cflags="-O2 -std=gnu11 -Wall -Wextra"
mkdir -p "$build"
build=$(cd "$build" && pwd)
raw=$build/raw.txt
: >"$raw"

say() { echo "$name: $*" >&2; }

need_two_processors() {
    [ "$(nproc)" -ge 2 ] || { say "two processors are needed"; exit 1; }
}

load() { cut -d' ' -f1-3 /proc/loadavg; }

processor() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

# The line of a report about this machine.
describe_processor() {
    echo "$(processor), $(nproc) in use here$(grep -q '^flags.* hypervisor' /proc/cpuinfo && echo ', in a virtual machine')"
}

# The line of a report about what was measured: describe_library FINGERPRINT
describe_library() {
    echo "liblapi_r.so with SHA-256 $1, tree at $(git -C "$root" describe --always --dirty 2>/dev/null || echo 'no git')"
}

# Which binary was measured: the tree may have changed since it was built.
fingerprint() { sha256sum "$stage/lib/liblapi_r.so" | cut -c1-12; }

# An MPI that peers.sh has fetched for `make bench`: find_fetched mpich|ompi sets peer_version,
# peer_folder and peer_includes; it fails when there is none, and fetches none.
find_fetched() {
    # shellcheck disable=SC2046 # words
    set -- $("$root/benches/peers.sh" --there "$root/target/bench/peers" | grep "^$1 ")
    peer_version=${2:-} peer_folder=${3:-} peer_includes=${4:-}
    [ -n "$peer_version" ]
}

# Puts a report between the marks of this name in docs/performance.md: write_tables MARK REPORT
write_tables() {
    page=$root/docs/performance.md
    awk -v mark="$1" -v report="$2" '
        $0 == "<!-- " mark ": begin -->" { print; print ""; while ((getline text < report) > 0) print text; print ""; skip = 1 }
        $0 == "<!-- " mark ": end -->" { skip = 0 }
        !skip { print }
    ' "$page" >"$page.new"
    mv "$page.new" "$page"
    say "tables written into docs/performance.md"
}
