#!/usr/bin/env bash
# What cargo runs each program of tests with (ci/test.sh), as `ci/runner.sh PROGRAM ARGUMENT...`:
# those that TESTS_ONLY names, or all but those that TESTS_EXCEPT names. The names are those of
# their files, or of the library whose unit tests they are. TESTS_SKIP names tests to leave out.
# The last line says what a program has taken: the lanes are balanced by it.
set -eu
name=$(basename "$1")
name=${name%-*}
case " ${TESTS_ONLY-$name} " in *" $name "*) ;; *) exit 0 ;; esac
case " ${TESTS_EXCEPT-} " in *" $name "*) exit 0 ;; esac
for test in ${TESTS_SKIP-}; do set -- "$@" --skip "$test"; done
TIMEFORMAT="== $name: %R s, of processors %U s and in the kernel %S s"
time "$@"
