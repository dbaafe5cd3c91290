#!/usr/bin/env bash
# Threads and memory under ThreadSanitizer and AddressSanitizer: unit tests, and C programs
# under poe with an instrumented library. `ci/sanitize.sh thread` or `ci/sanitize.sh address`
# for one of them. PARTS="doors" runs only what belongs to doors, PARTS="core" only the rest.
#
# Everything is built into target/sanitize. The stable compiler has the sanitizers and hides them:
# RUSTC_BOOTSTRAP shows them. std stays as it is, not instrumented; ci/sanitize/thread.supp lists
# the consequences. With --target, build scripts and macros are not instrumented. C programs are
# compiled by gcc and linked with Rust's own runtime, which the library needs: gcc's is older and
# lacks some of its functions.
set -eu
cd "$(dirname "$0")/.."
ci/deps.sh build c++ sanitize

target=$(rustc -vV | sed -n 's/^host: //p')
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
stage=${LAPI_STAGE:-$build/stage}
runtime=$build/sanitize/runtime
[ -x "$stage/bin/poe" ] || make stage
# The list of false reports uses full names, which only full debug information has.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=full
# Tests unwind: with "abort" cargo would compile a door's library twice, into one file.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_PANIC=unwind
ran=() failed=()
parts=${PARTS:-core doors}

# Unit tests: the modules that have threads, and those that move bytes.
units=(base:: transport:: proto:: engine:: dgsp:: job::)
# Programs under poe: a file of tests, or some of them. ThreadSanitizer also sees the races of a
# program, and programs for LAPI
# read a variable that a handler changes, or memory that a peer puts to, as the manual allows: it
# gets those that do everything by counters and atomics.
address_programs=(stress init interrupt counters handlers data fence vectors dgsp address util)
thread_programs=(
    stress
    "init several_handles_in_several_threads sixteen_instances_at_once term_in_another_thread term_while_others_are_inside"
    "init a_helper_thread_ends_the_program a_forked_child_has_no_handle tasks_that_leave_without_term_harm_no_other_task"
    "interrupt sleepers_are_woken signals_disturb_nothing"
    "counters another_thread_wakes_a_waiting_one threads_wait_each_for_its_own_counter a_thousand_counters"
)
# Tests of doors, whose libraries and programs are instrumented, too: a package, and its targets.
# What a daemon of rpmem says goes to the library where that has started it (calls): reports of
# ThreadSanitizer about a daemon are seen where tests start it themselves (daemon). Its tests with
# libpmemobj are not here: the distribution's pmempool has no sanitizer's runtime, which an
# instrumented library needs. Programs of GM that are started by hand are not for ThreadSanitizer:
# several of their threads share locks of std, whose order it does not see. Nor is the suite of
# sessions, where both ends are in one process: over UDP their order goes through the system.
# The strangers of a listener count its descriptors, and ThreadSanitizer has some of its own.
# That of many sessions measures memory.
address_doors=(
    "session --lib --test processes --test strangers --test conformance --test receivers --test bursts"
    "gm --lib --test beside_lapi --test conformance --test by_hand"
    "netio3 --lib --test programs"
    "rpmem --lib --bins --test calls --test daemon"
    "fam --lib --bins --test daemon --test pool --test movers --test persistence --test programs --test conformance"
)
thread_doors=(
    "session --lib --test processes --test receivers --test bursts"
    "gm --lib --test beside_lapi"
    "netio3 --lib --test programs"
    "rpmem --lib --bins --test calls --test daemon"
    "fam --lib --bins"
)
# Tests that are skipped: those that measure or count memory and mappings, which would be the
# sanitizer's, or replace malloc or pthread_create, those that leave no memory for shadows, and one
# that has a sanitizer of its own.
left_out=(
    a_description_takes_memory_only_as_it_arrives memory_attached_later
    a_long_run_needs_no_more_memory four_gib sixty_four_tasks
    small_messages_of_a_job_take_no_memory
    threads_read_a_descriptor
    a_process_without_threads
    is_bounded the_number_of_copies_is_that_of_the_buffers tasks_that_exceed_their_bounds a_call_that_finds_no_memory little_address_space_is_named
)

say() { echo "== sanitize: $*"; }

# Runs a command; it fails when its status is not 0, or when a sanitizer has written a report.
checked() { # checked NAME COMMAND...
    local name=$1 log=$build/sanitize/$1.log started=$SECONDS
    shift
    say "$name"
    if ! "$@" </dev/null >"$log" 2>&1 || grep -qaE 'WARNING: ThreadSanitizer|ERROR: (Address|Leak)Sanitizer' "$log"; then
        grep -aE 'SUMMARY: |^test .*FAILED|panicked at' "$log" | sort | uniq -c | head -n 40 || true
        say "$name FAILED; everything it said: $log"
        failed+=("$name")
        return
    fi
    grep -aE '^test result' "$log" | sort | uniq -c | sed 's/finished in.*//' || true
    ran+=("$name, $((SECONDS - started)) s")
}

instrumented() { # instrumented KIND COMMAND...: cargo, with the core instrumented
    local kind=$1 flags="-Zsanitizer=$1 --cfg one_mapping"
    shift
    # The flag is part of the ABI, and std was built without.
    [ "$kind" = address ] || flags+=" -Cunsafe-allow-abi-mismatch=sanitizer"
    RUSTC_BOOTSTRAP=1 RUSTFLAGS=$flags CARGO_TARGET_DIR=$build/sanitize/$kind "$@"
}

one_sanitizer() { # one_sanitizer KIND SHORT
    local kind=$1 short=$2 prefix=$build/sanitize/$1/stage
    local skip=() programs=${kind}_programs[@] number=0 file only
    for name in "${left_out[@]}"; do skip+=(--skip "$name"); done
    # A simulation's threads run one at a time, so that there is no race. The lock by which they
    # take turns is std's, which is not seen when a thread waits for it.
    [ "$kind" = address ] || skip+=(--skip simulation::)
    ln -sfn "$(rustc --print sysroot)/lib/rustlib/$target/lib/librustc-stable_rt.$short.a" "$runtime/lib$short.a"

    case " $parts " in *" doors "*) of_doors ;; esac
    case " $parts " in *" core "*) ;; *) return ;; esac

    checked "$kind-build" instrumented "$kind" cargo build --release --target "$target" -p lapi_r
    # One process for each: ThreadSanitizer's records of ended threads slow down a long one.
    for unit in "${units[@]}"; do
        checked "$kind-unit-${unit%%:*}" instrumented "$kind" env TEST_PATIENCE=5 \
            cargo test --release --target "$target" -p openlapi --lib -- --test-threads 2 "${skip[@]}" "$unit"
    done

    # An installation with the usual poe and wrappers, whose library is the instrumented one.
    rm -rf "$prefix"
    cp -a "$stage" "$prefix"
    install -m 755 "$build/sanitize/$kind/$target/release/liblapi_r.so" "$prefix/lib/liblapi_r.so.1"
    export MP_COMPILER="gcc -fsanitize=$kind -static-lib$short -L$runtime -rdynamic"
    for words in "${!programs}"; do
        read -r file only <<<"$words"
        number=$((number + 1))
        # shellcheck disable=SC2086 # names of tests, split at blanks
        checked "$kind-$number-$file" env LAPI_STAGE="$prefix" TEST_PATIENCE=5 \
            cargo test -p openlapi-tests --test "$file" -- --test-threads 2 "${skip[@]}" $only
    done
    unset MP_COMPILER
}

of_doors() {
    local words doors=${kind}_doors[@]
    for words in "${!doors}"; do
        # shellcheck disable=SC2086 # targets, split at blanks
        checked "$kind-door-${words%% *}" instrumented "$kind" env TEST_PATIENCE=10 LAPI_STAGE="$stage" \
            TEST_CFLAGS="-fsanitize=$kind -static-lib$short -L$runtime -rdynamic" \
            cargo test --release --target "$target" -p openlapi-$words -- --test-threads 2 "${skip[@]}"
    done
}

# A name that has moved leaves out nothing: each module of the list must exist, and have the last
# part of the name.
known_names() {
    local name last module
    for name in $(sed -n 's/^race:^*openlapi:://p' ci/sanitize/thread.supp | tr -d '$'); do
        last=${name##*::}
        module=${name%::*}
        module=$(sed -E 's/(^|::)[A-Z][^:]*$//; s/::tests$//; s|::|/|g' <<<"$module")
        if { [ ! -f "src/$module.rs" ] && [ ! -f "src/$module/mod.rs" ]; } || ! grep -rqw "${last%>}" "src/$module"*; then
            echo "ci/sanitize/thread.supp: openlapi::$name does not exist" >&2
            return 1
        fi
    done
}

known_names
mkdir -p "$runtime"
# Programs end by _exit as often as by return, and keep their tables until then: that
# memory is not lost.
export ASAN_OPTIONS="detect_leaks=0 detect_stack_use_after_return=0 exitcode=166"
export TSAN_OPTIONS="suppressions=$PWD/ci/sanitize/thread.supp exitcode=166 second_deadlock_stack=1"
for kind in ${*:-thread address}; do
    case $kind in
    thread) one_sanitizer thread tsan ;;
    address) one_sanitizer address asan ;;
    *) echo "ci/sanitize.sh: no such sanitizer: $kind" >&2 && exit 2 ;;
    esac
done
say "what ran:"
printf '   %s\n' "${ran[@]}"
if [ ${#failed[@]} -ne 0 ]; then
    say "these have failed: ${failed[*]}" >&2
    exit 1
fi
say "all of it passed, ${#ran[@]} steps in $((SECONDS / 60)) min $((SECONDS % 60)) s"
