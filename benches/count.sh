#!/usr/bin/env bash
# Counts instructions with Valgrind, where it is there, and compares them with benches/instructions.txt: more than 15 per cent
# above what stands there fails. Unlike times, they are the same on a busy machine; on another processor they differ by a few
# per cent, because the C library picks its functions by it.
#
#   benches/count.sh             counts and compares
#   BLESS=1 benches/count.sh     counts and writes the file anew
set -euo pipefail
cd "$(dirname "$0")/.."

if ! valgrind --version >/dev/null 2>&1; then
  echo "instructions: not counted, for Valgrind is not there"
  exit 0
fi
# Both at once, so that they share what they are made of.
cargo build --quiet --locked --release -p goondan-cli -p goondan-benches --bins
programs=${CARGO_TARGET_DIR:-target}/release
seen=benches/instructions.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# How many instructions a program takes, with options for callgrind before it.
count() { valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'; }
of() { count --toggle-collect='counted::counted*' "$programs/counted" "$@"; }

# 64 layers more, in 100 turns.
layer() { echo $((($(of "$1" 65) - $(of "$1" 1)) / 6400)); }

# The first start makes the directory of the conversation.
start() {
  local run=("$programs/goondan" run examples/quickstart --state-root "$work" --fsync never --input hello)
  "${run[@]}" >/dev/null
  count "${run[@]}"
}

{
  # In these turns, each kind runs once.
  echo "a layer of the turn: $(layer 'layers of the turn')"
  echo "a layer of the step: $(layer 'layers of the step')"
  echo "a layer of the tool call: $(layer 'layers of the tool call')"
  echo "a turn of 3 steps, 2 tool calls, 10 layers of each kind: $(($(of turns 100) / 100))"
  echo "the same turn while somebody listens: $(($(of 'observed turns' 100) / 100))"
  echo "a message event over 10,000 messages: $(($(of 'message events' 1000) / 1000))"
  echo "goondan run --input, from start to end: $(start)"
} >"$work/counted"

if [ "${BLESS:-}" = 1 ]; then
  cp "$work/counted" "$seen"
fi
awk -F': ' '
  NR == FNR { known[$1] = $2; next }
  { most = int(known[$1] * 1.15); worse = $2 > most
    printf "%-58s %9d instructions, at most %9d%s\n", $1, $2, most, worse ? "  TOO MANY" : ""
    failed = failed || worse }
  END { exit failed }
' "$seen" "$work/counted"
