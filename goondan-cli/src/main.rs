//! The `goondan` command with the extensions that come with it.

use std::process::ExitCode;

fn main() -> ExitCode {
    goondan_cli::main()
}
