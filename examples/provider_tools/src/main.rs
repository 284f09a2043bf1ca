//! The `goondan` command with the extension `provider-tools` linked into it.

use provider_tools as _;

fn main() -> std::process::ExitCode {
    goondan_cli::main()
}
