#!/usr/bin/env bash
# Measures how long the author of an extension waits: for a clean build of a plugin crate, debug and release, and for
# the build after one line has changed. Prints each beside its budget, and the crates that take most of a clean build.
#
#   benches/build-times.sh [PLUGIN]      a folder of plugins/; defaults to message-window
#
# Two jobs run at a time, because the budgets are for two cores. Nothing is fetched. Only a temporary directory is
# written, and the source file of the plugin, which is restored.
set -euo pipefail
cd "$(dirname "$0")/.."

plugin=${1:-message-window}
source=plugins/$plugin/src/lib.rs
[ -f "$source" ] || { echo "there is no $source" >&2; exit 2; }

work=$(mktemp -d)
cp "$source" "$work/before.rs"
trap 'cp "$work/before.rs" "$source"; rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$work/target CARGO_TERM_COLOR=never

# As a library, which is what an author builds.
build() { cargo rustc --quiet --locked --offline --jobs 2 -p "goondan-$plugin" --lib --crate-type cdylib "$@"; }

# Runs the rest of the arguments and prints the name, the wall time, the processor time and the budget. When the two
# times differ by more than a factor of two, the machine was busy with other work.
timed() {
  local name=$1 budget=$2 TIMEFORMAT='%1R %1U %1S' took
  shift 2
  took=$({ time "$@" >"$work/log" 2>&1; } 2>&1) || { cat "$work/log" >&2; exit 1; }
  awk -v name="$name" -v budget="$budget" \
    '{ printf "%-28s %6.1f s  (%.1f s of the processors)  at most %d s\n", name, $1, $2 + $3, budget }' <<<"$took"
}

# The longest units of the last timing report of cargo.
longest_units() {
  local report=$CARGO_TARGET_DIR/cargo-timings/cargo-timing.html
  sed -n '/^const UNIT_DATA = /,/^];/p' "$report" | awk '
    /"name":/     { gsub(/.*"name": "|",?$/, ""); name = $0 }
    /"target":/   { gsub(/.*"target": "|",?$/, ""); target = $0 }
    /"duration":/ { gsub(/.*"duration": |,?$/, ""); printf "  %6.1f s  %s%s\n", $0, name, target }
  ' | sort -rn | head -8
}

timed "clean build, debug" 30 build --timings
debug=$(longest_units)
echo '#[doc(hidden)] pub const ONE_LINE_MORE: u8 = 1;' >>"$source"
timed "build after a change, debug" 3 build
cp "$work/before.rs" "$source"
timed "clean build, release" 45 build --release --timings
release=$(longest_units)

printf '\nthe longest units of a clean debug build\n%s\n' "$debug"
printf '\nthe longest units of a clean release build\n%s\n' "$release"
