//! A command in the directory of a skill.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use goondan::tool::ToolContext;
use goondan::{Error, Result};
use goondan_text::NumberedFile;
use process::{Environment, Output};

/// The bytes of each output that the model reads.
const LONGEST: usize = 50_000;

/// The traces of a command that has ended.
pub(crate) struct Ended {
    /// Its exit code; 128 and the signal, if one has ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `command` in a shell, with `args` as its last arguments, and ends everything that it has started.
///
/// # Errors
/// `E_SKILLS_RUN` when it cannot be started, and `E_SKILLS_TIMEOUT` when it takes longer than `limit`.
pub(crate) async fn run(
    ctx: &ToolContext<'_>,
    environment: &Environment,
    dir: &Path,
    command: &str,
    args: &[String],
    limit: Duration,
) -> Result<Ended> {
    let cannot = |why: String| {
        Error::new("E_SKILLS_RUN", format!("`{command}` cannot be run: {why}"))
            .suggest("check the command, and that the program is there and can be executed")
    };
    let script = if args.is_empty() { command.to_owned() } else { format!("{command} \"$@\"") };
    let mut shell = environment.command("sh");
    shell.arg("-c").arg(script).arg("sh").args(args).current_dir(dir);
    let files = ctx.workdir()?;
    let quota = ctx.max_output_bytes();
    let file = |name| NumberedFile::new(files, ["skills", ctx.call_id().as_str(), name], "txt").within(quota);
    let outputs = ["stdout", "stderr"].map(|name| Output::new(LONGEST, file(name)));
    let ended = process::run(shell.into(), limit, outputs, |_| {}).await.map_err(|error| cannot(error.to_string()))?;
    let [stdout, stderr] = [ended.stdout, ended.stderr].map(|output| output.text().trim().to_owned());
    if ended.timed_out {
        let message = format!("`{command}` took longer than {limit:?}, and was ended");
        let output = format!("it has written: {stdout}\nand to its standard error: {stderr}");
        return Err(
            Error::new("E_SKILLS_TIMEOUT", format!("{message}; {output}")).suggest("give it a longer `timeout`")
        );
    }
    match ended.status.code().unwrap_or_else(|| 128 + ended.status.signal().unwrap_or_default()) {
        // The shell's way to say that a program is not there, or cannot be executed.
        code @ (126 | 127) => Err(cannot(format!("the shell says {code}: {stderr}"))),
        code => Ok(Ended { code, stdout, stderr }),
    }
}
