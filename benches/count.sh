#!/usr/bin/env bash
# Counts instructions with Valgrind, if it is installed, and compares them with benches/instructions.txt. A count of
# more than 15 per cent above the recorded one fails. Unlike times, counts do not depend on other work on the machine;
# on another processor they differ by a few per cent, because the C library chooses its functions by the processor.
#
#   benches/count.sh             counts and compares
#   benches/count.sh quick       the same with a command that has only what the quick start needs, which has 120 crates
#                                less to build; its start is 3 per cent shorter than that of the whole command
#   BLESS=1 benches/count.sh     counts and records
set -euo pipefail
cd "$(dirname "$0")/.."

if ! valgrind --version >/dev/null 2>&1; then
  echo "instructions: not counted, because Valgrind is not installed"
  exit 0
fi
features=()
if [ "${1:-}" = quick ]; then
  features=(--no-default-features --features goondan-cli/logging,goondan-cli/message-window)
fi
# One build, so that both share their dependencies with the same features.
cargo build --quiet --locked --release -p goondan-cli -p goondan-benches --bins "${features[@]}"
programs=${CARGO_TARGET_DIR:-target}/release
recorded=benches/instructions.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Counts the instructions of a program, whose command line may begin with options of callgrind.
count() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'; }
of() { count --toggle-collect='counted::counted*' "$programs/counted" "$@"; }

# The instructions of one layer: the difference of 64 layers in 100 turns.
layer() { echo $((($(of "$1" 65) - $(of "$1" 1)) / 6400)); }

# The instructions of one more piece of an answer: the difference of 1,000 pieces in 100 turns.
piece() { echo $((($(of "$1" 1001) - $(of "$1" 1)) / 100000)); }

# The instructions of the comparison of a request with the one before (CACHE-01), in all turns of a work: the difference
# of two runs, since it is counted from the start of the program.
prefix() { count --toggle-collect='*prefix::Prefixes::sent*' "$programs/counted" "$@"; }
prefixes() { echo $((($(prefix "$1" 300) - $(prefix "$1" 100)) / 200)); }

# The instructions of a start. The run before it creates the directory of the conversation.
start() {
  local run=("$programs/goondan" run examples/quickstart --state-root "$work" --fsync never --input hello)
  "${run[@]}" >/dev/null
  count "${run[@]}"
}

{
  # Each kind of layer runs once in these turns.
  echo "a layer of the turn: $(layer 'layers of the turn')"
  echo "a layer of the step: $(layer 'layers of the step')"
  echo "a layer of the tool call: $(layer 'layers of the tool call')"
  echo "a layer that projects a message: $(layer 'layers that project')"
  echo "a layer that prepares an answer: $(layer 'layers that prepare an answer')"
  echo "a layer that prepares a reply: $(layer 'layers that prepare a reply')"
  echo "a layer that reviews the answer: $(layer 'layers that review')"
  echo "a piece of an answer: $(piece pieces)"
  echo "a piece through a transformer that changes nothing: $(piece 'transformed pieces')"
  echo "a layer of the step whose failures are skipped: $(layer 'skipping layers of the step')"
  echo "a turn of 3 steps, 2 tool calls, 10 layers of each kind: $(($(of turns 100) / 100))"
  echo "the same turn with a listener on all events: $(($(of 'observed turns' 100) / 100))"
  echo "the same turn beside an observer that wants nothing: $(($(of 'turns beside an observer' 100) / 100))"
  echo "the same turn with an observer of everything: $(($(of 'watched turns' 100) / 100))"
  echo "a turn of a step over 1,000 messages, with a listener: $(($(of 'steps over 1,000 messages' 100) / 100))"
  echo "of it the comparison with the request before: $(prefixes 'steps over 1,000 messages')"
  echo "a message event over 10,000 messages: $(($(of 'message events' 1000) / 1000))"
  echo "goondan run --input, from start to end: $(start)"
} >"$work/counted"

if [ "${BLESS:-}" = 1 ] && [ "${1:-}" != quick ]; then
  cp "$work/counted" "$recorded"
fi
# CACHE-01
awk -F': ' '
  /^a turn of a step over/ { step = $2 }
  /^of it the comparison/ { part = $2 }
  END {
    printf "the comparison is %.2f per cent of that turn, at most 1.00\n", 100 * part / step
    exit 100 * part > step
  }
' "$work/counted"
awk -F': ' '
  NR == FNR { known[$1] = $2; next }
  { most = int(known[$1] * 1.15); worse = $2 > most
    printf "%-58s %9d instructions, at most %9d%s\n", $1, $2, most, worse ? "  TOO MANY" : ""
    failed = failed || worse }
  END { exit failed }
' "$recorded" "$work/counted"
