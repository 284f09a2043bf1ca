//! The `goondan` command with the extension `notes` in it.

use notes as _;

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
