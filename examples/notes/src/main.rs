//! The `goondan` command with the extension `notes` linked into it.

use notes as _;

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
