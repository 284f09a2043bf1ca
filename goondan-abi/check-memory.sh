#!/usr/bin/env bash
# Looks for misuse of memory in goondan-abi with the tools that are installed, and prints which those are:
#  - Miri runs the unit tests. They are few, because most unsafe code needs a second binary, which Miri cannot load.
#  - Valgrind runs the tests that load, run, cancel, panic and reload, in Rust and in C. It reports nothing at present,
#    so there are no suppressions. It does not look for leaks: libraries and their descriptors are never freed, on
#    purpose.
set -euo pipefail
cd "$(dirname "$0")/.."

ran=()
if cargo miri --version >/dev/null 2>&1; then
  cargo miri test --locked -p goondan-abi --features host --lib
  ran+=(Miri)
fi
if valgrind --version >/dev/null 2>&1; then
  host=$(rustc -vV | sed -n 's/^host: //p')
  runner="CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$host")_RUNNER"
  env "$runner=valgrind --quiet --error-exitcode=1 --leak-check=no --fair-sched=yes" \
    cargo test --locked --workspace --test library -- \
    --test-threads=1 frozen:: members:: runtime:: failures:: c:: reload::
  ran+=(Valgrind)
fi
echo "memory of goondan-abi: checked with ${ran[*]:-nothing, because neither Miri nor Valgrind is installed}"
