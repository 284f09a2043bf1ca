//! Owns a `goondan` command that has an extension which tells its key.

use leaky as _;

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
