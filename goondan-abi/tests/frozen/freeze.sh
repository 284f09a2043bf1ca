#!/usr/bin/env bash
# Builds the library of one version of the ABI and freezes it beside its source: see README.md.
# Usage: goondan-abi/tests/frozen/freeze.sh 1.0
set -euo pipefail
cd "$(dirname "$0")"
version=${1:?the version, such as 1.0}
root=$(cd ../../.. && pwd)
crate=$(mktemp -d)
trap 'rm -rf "$crate"' EXIT

cp ../../src/table.rs "$version/table.rs"
# Its own workspace, so that neither the features nor the profiles of goondan's have an effect.
cat >"$crate/Cargo.toml" <<EOF
[package]
name = "frozen-members"
version = "1.0.0"
edition = "2024"

[lib]
path = "$PWD/$version/lib.rs"
crate-type = ["cdylib"]

[dependencies]
goondan = { path = "$root", default-features = false }
schemars = "1"
serde = { version = "1", features = ["derive"] }
serde_json = "1"
tokio = { version = "1", features = ["rt", "time"] }
tracing = "0.1"

[profile.release]
opt-level = "z"
lto = true
codegen-units = 1
strip = true

[workspace]
EOF
cp "$root/Cargo.lock" "$crate/"
# Without the paths of this machine in the library.
export RUSTFLAGS="--remap-path-prefix=$root=/goondan --remap-path-prefix=$HOME=/home"
cargo build --release --quiet --manifest-path "$crate/Cargo.toml" --target-dir "${CARGO_TARGET_DIR:-$root/target}/frozen"
cp "${CARGO_TARGET_DIR:-$root/target}/frozen/release/libfrozen_members.so" "$version/libmembers.so"
ls -l "$version"
