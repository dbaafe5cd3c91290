#!/usr/bin/env bash
# Tests on processors of other kinds, which qemu plays: test-cross.sh [--short] [MACHINE...]
# MACHINE is aarch64 or powerpc64le; without any it is both.
#
# On each: the headers of C and C++ against that machine's compilers, the unit tests of the core,
# the runtime, the profiler and the Fortran interface, those of shared memory with larger pages,
# too; the programs of the tests below, in C and Fortran, which are built with the staged wrapper
# and run as tasks of this machine's poe; and the Debian packages, from which a sample and programs
# of the doors are run.
#
# --short, which is part of make test: the headers of C, C++ and Fortran, compared with what Rust
# has on this machine (the numbers are the same on all of 64 bits, and src/abi/layout.rs holds the
# core to them wherever it is compiled), and the core's unit tests of rings, locks and clocks.
# That takes a build of these tests for each machine, two minutes of a processor; the library and
# the tools would take two more each. It installs nothing: without the tools it says so, and passes.
# LAPI_STAGE is this machine's.
#
# qemu runs each instruction as written, in the order of this machine's memory: what a weakly
# ordered one may do is tried by the models (make loom).
set -eu
cd "$(dirname "$0")/.."
short=
[ "${1-}" != --short ] || { short=yes && shift; }
machines=("$@")
[ $# -ne 0 ] || machines=(aarch64 powerpc64le)
files=(address checkpoint coll counters crash data dgsp env errors failure fence fork fortran handlers init interrupt lapiprof locks
    messages profiling progress rdma recovery report samples standalone stress survive threads util vectors)
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
make=${MAKE:-make}
export TEST_PATIENCE=${TEST_PATIENCE-4} ADDRESS_RUNS=${ADDRESS_RUNS-20}
# A test that hangs is ended, and so is qemu.
limit=$((600 * TEST_PATIENCE))

# What qemu 7.2 cannot do as it runs programs of another kind, and the tests that need it.
unit_tests_without_qemu=(
    # It makes up /proc/self/stat, see below.
    api::session::tests::processes::an_event_loop_learns_that_a_process_has_died_over_udp
    api::session::tests::processes::event_loops_of_two_processes_converse_over_udp
    # It has no filters of system calls.
    base::known_threads::tests::threads_are_known_while_they_live_and_are_not_looked_up
    # It does not lead statx to the folder of that machine's libraries: they seem not to be there.
    base::call_stack::tests::the_stack_leads_out_of_this_file
    # It has no process_vm_readv and process_vm_writev.
    transport::shm::remote::tests::a_landmark_distinguishes_processes
    transport::shm::remote::tests::another_process
    transport::shm::remote::tests::memory_that_ends_in_the_middle
    transport::shm::remote::tests::more_than_one_call_takes
    transport::shm::remote::tests::to_and_from_oneself
    transport::shm::remote::tests::what_the_kernel_refuses
    transport::shm::tests::memory_of_a_task_that_has_parted_is_not_accessed
    # It does not say how long a datagram may be on a route (IP_MTU).
    transport::udp::socket::tests::every_length_arrives_whole
    transport::udp::socket::tests::the_longest_datagram_fits_and_the_next_does_not
)
# The other files of tests/tests: none of their tests is tried under qemu.
files_without_qemu=(
    # Jobs of poe by UDP or libfabric: see below, at UDP. There is no libfabric for that machine.
    deaths field_network hosts network rails udp
    # Programs of this machine beside the tasks, started as tasks are, or tasks without the harness
    # that puts qemu before them: an attacker, launchers, a driver that kills and starts tasks.
    field hostile launchers soak
    # The tools, which qemu or the tests start as programs of this machine; programs of 32 bits.
    installed interop lapi_info lapiprof_interrupted perf poe
    # They depend on no processor: sources, man pages, scripts, what is published, the harness.
    completion corpora documents floors harness man publishing python wrappers
)
programs_without_qemu=(
    # A task, or what it begins with, is a program of this machine: a shell, setpriv, unshare, echo.
    a_program_without_lapi_does_not_notice
    a_task_that_does_not_reply_is_not_harmed
    address_maps_that_differ_are_warned_of_where_the_program_moves
    another_process_goes_on
    another_process_comes_back_when_all_others_have_ended
    another_process_does_not_come_back_and_all_others_have_ended
    another_process_goes_on_without_a_launcher
    another_user_cannot_join
    a_process_that_stays_loses_nothing_where_the_kernel_refuses_copies
    a_task_is_replaced_over_ipv6
    addresses_may_be_of_ipv6
    checkpoint::checkpoint
    dev_shm_absent
    dev_shm_full
    interop
    packet_sizes_may_differ
    programs_one_after_another_in_one_job
    standalone
    wrong_lists_of_any_family_are_refused
    # It does not run what a task starts, or becomes: that is given to the kernel.
    a_job_becomes_another_program
    a_program_that_waits_for_any_child_finds_none_of_the_library
    a_task_is_replaced_before_another_one_learns_of_its_death
    a_task_that_was_killed_is_replaced
    frames_of_the_program_have_source_lines
    programs_inherit_nothing_of_ours
    without_poe_it_goes_to_standard_error
    # Nor does this machine run the installed lapi_prof.
    a_task_that_dies_is_missing_in_the_report
    places_that_cannot_be_looked_at_are_named
    the_tool_names_its_version
    # It aborts in a child of fork that creates a thread, when its parent has several.
    a_job_of_one_task_forks_another
    children_disturb_no_other_task
    children_form_jobs
    handlers_may_fork
    no_call_works_with_the_parents_handle
    the_signal_harms_no_task_that_has_called_init
    what_other_threads_held_does_not_stop_a_child
    # It catches every signal itself, from its beginning.
    a_task_that_does_not_come_to_init
    # These processors do not trap, and have no addresses that are not canonical.
    a_division_by_zero_is_named
    an_address_that_no_processor_has_is_not_named
    # It has no process_vm_readv and process_vm_writev.
    every_size_when_copies_are_refused_later
    shapes_when_copies_are_refused_later
    tasks_give_each_other_up_and_begin_again
    # It makes up /proc/self/stat, with another start of the process than other processes see: tasks
    # that communicate by UDP on one host take each other for dead.
    a_firehose_of_gets_and_puts
    a_process_that_stays_loses_nothing_by_a_network
    a_task_dies_while_another_one_is_away
    a_task_dies_while_it_leaves
    all_tasks_leave_at_once_and_others_come_back
    all_tasks_leave_at_once_and_stay
    the_others_await_the_one_that_comes_late
    a_put_is_counted_when_it_is_at_the_target
    handlers_run_after_completion
    another_process_goes_on_by_a_network
    puts_and_gets_of_every_length_by_a_network
    # It describes each page that is mapped, so for the stack of 64 TiB that is to be refused it
    # would take 400 GiB, and most of an hour.
    threads_that_cannot_be_made_are_an_error
    # It sets no limit of the address space.
    a_call_that_finds_no_memory_says_so
    little_address_space_is_named
    # poe -profile preloads the profiler of this machine, which is beside it.
    a_fault_of_a_job_with_a_profile_is_described_and_profiled
    profiling::a_profile_has_the_lines_of_the_program
    # There is no libfabric for that machine.
    local_and_remote_traffic_are_apart
    two_hosts_have_local_and_remote_traffic
    shared_memory_may_be_refused_and_required
)
# What it cannot do as it runs programs of POWER.
programs_without_qemu_powerpc64le=(
    # The address of a fault is the one in the register DAR, which it sets where data is accessed,
    # and not where an instruction is fetched.
    a_call_to_where_no_code_is_shows_its_caller
    # It has no vDSO for them, by which the unwinder knows the frame of a signal. So the unwinder
    # reads instructions at what the stack has where a function that the interrupted one calls would
    # save its return address: a fault, or none, by what was left there.
    a_fault_has_frames_of_the_program
    a_fault_says_what_was_done_and_for_whom
    # Their time base has the rate of this machine's counter, not 512 MHz: calls of a microsecond
    # are not short to the profiler then, and each is timed.
    sampling::what_is_not_timed_is_counted
)
# Not in the short form: many packets, which take minutes without optimisation.
long_unit_tests=(
    base::ring::tests::two_threads_see_every_packet_in_order
)
skips() { [ $# -eq 0 ] || printf -- '--skip\n%s\n' "$@"; }

missing() { # missing MACHINE: the first tool that is not there
    local tool
    for tool in "$1"-linux-gnu-{gcc,g++,gfortran} "qemu-${1/powerpc64le/ppc64le}"; do
        command -v "$tool" >/dev/null || { echo "$tool" && return; }
    done
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1-unknown-linux-gnu" ] || echo "Rust target $1-unknown-linux-gnu"
}

# Each file of tests is in one of the two lists.
diff <(cd tests/tests && printf '%s\n' *.rs */main.rs | sed 's,/main\.rs$,,; s,\.rs$,,' | sort) \
    <(printf '%s\n' "${files[@]}" "${files_without_qemu[@]}" | sort) >&2 ||
    { echo "ci/test-cross.sh: which of these files of tests are for qemu?" >&2 && exit 1; }

failed=()
step() { # step NAME COMMAND...: without input, and remembers the name if it fails
    local name=$1 started=$SECONDS
    shift
    echo "== test-cross: $name"
    "$@" </dev/null || failed+=("$name")
    echo "== test-cross: $name: $((SECONDS - started)) s"
}

# As ci/test.sh has them: the programs of the tests that make test has built.
built() { # built NAME [ARGUMENT...]: the tests of these programs
    TESTS_ONLY=$1 cargo test --workspace --tests --no-fail-fast --config "target.'cfg(all())'.runner = '$PWD/ci/runner.sh'" -- "${@:2}"
}
headers() { # this machine's numbers, and the other one's compilers
    built "layout compile" && MP_COMPILER=${CROSS_COMPILE}gcc built fortran headers::types_and_constants_are_those_of_c
}

on_one_machine() { # on_one_machine MACHINE
    local machine=$1 target=$1-unknown-linux-gnu qemu name packages programs
    qemu="qemu-${machine/powerpc64le/ppc64le} -L /usr/$machine-linux-gnu"
    name=$(tr a-z- A-Z_ <<<"$target")
    export CROSS_COMPILE=$machine-linux-gnu-
    export "CARGO_TARGET_${name}_LINKER=${CROSS_COMPILE}gcc" "CARGO_TARGET_${name}_RUNNER=timeout -k 10 $limit $qemu"
    export TEST_RUNNER=$qemu
    if [ -n "$short" ]; then
        # In a folder of their own: a build would keep the other tests waiting. The ciphers of
        # aegis, in C, are not tested here: optimised, they take 20 s more.
        step "$machine: unit tests of the core" \
            env CARGO_TARGET_DIR="$build/cross" CFLAGS=-O0 cargo test -p openlapi --lib --target "$target" base:: -- \
            $(skips "${unit_tests_without_qemu[@]}" "${long_unit_tests[@]}")
        step "$machine: the headers against its compilers" headers
        return
    fi
    step "$machine: the library" "$make" stage "TARGET=$target"
    step "$machine: the headers against its compilers" cargo test -p openlapi-capi --target "$target" --test layout --test compile
    programs=("${programs_without_qemu[@]}")
    [ "$machine" != powerpc64le ] || programs+=("${programs_without_qemu_powerpc64le[@]}")
    packages=(-p openlapi -p openlapi-runtime -p openlapi-prof -p openlapi-fortran)
    # Of simulations, 200 jobs took half an hour under qemu.
    step "$machine: unit tests" env SEEDS=10 cargo test "${packages[@]}" --lib --no-fail-fast --target "$target" -- \
        --exact $(skips "${unit_tests_without_qemu[@]}")
    for size in 16384 65536; do
        step "$machine: unit tests of shared memory, pages of $size bytes" \
            env QEMU_PAGESIZE=$size cargo test -p openlapi --lib --target "$target" -- base::ring transport::shm \
            $(skips "${unit_tests_without_qemu[@]}")
    done
    export MP_COMPILER=${CROSS_COMPILE}gcc LAPI_STAGE=$build/$target/stage
    step "$machine: programs" cargo test -p openlapi-tests --no-fail-fast "${files[@]/#/--test=}" -- \
        --exact $(skips "${programs[@]}")
    step "$machine: programs, pages of 64 KiB" env QEMU_PAGESIZE=65536 cargo test -p openlapi-tests --test fortran -- \
        --exact $(skips "${programs[@]}")
    unset MP_COMPILER LAPI_STAGE
    step "$machine: Debian packages" "$make" deb "TARGET=$target"
    step "$machine: a sample from the packages" ci/cross-deb.sh "$build/$target/deb" "$machine"
}

tried=()
for machine in "${machines[@]}"; do
    tool=$(missing "$machine")
    if [ -n "$tool" ]; then
        echo "== test-cross: $machine: not tried: there is no $tool (ci/deps.sh $machine cross-test)"
        [ -n "$short" ] || failed+=("$machine: no $tool")
        continue
    fi
    if [ -z "$short${TEST_POE-}" ]; then
        "$make" stage
        export TEST_POE=$build/stage/bin/poe
    fi
    tried+=("$machine")
    on_one_machine "$machine"
done
[ ${#failed[@]} -eq 0 ] || { printf 'ci/test-cross.sh: failed: %s\n' "${failed[@]}" >&2; exit 1; }
[ ${#tried[@]} -eq 0 ] || echo "== test-cross: all of it passed: ${tried[*]}"
