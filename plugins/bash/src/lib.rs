//! Tools that run shell commands and scripts.
//!
//! # Layout
//! - `run`: runs a program, and answers with what it wrote and how it ended.
//! - `shown`: presents it to people.

mod run;
mod shown;

use std::collections::BTreeMap;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use goondan::ErrorCode;
use goondan::prelude::*;
use process::Environment;
use tokio::process::Command;

use run::{Ended, Limits};

/// The config of the extension.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(extend("x-goondan" = { "shell": "bash" }))]
pub struct Config {
    /// The directory in which commands run. A relative path starts at the directory of the bundle. Defaults to the
    /// working directory of the conversation, which is empty at first.
    #[schemars(extend("x-goondan" = "root"))]
    pub cwd: Option<PathBuf>,
    /// Whether commands run in the newest open work tree that another extension has made, such as `changesets`, if
    /// there is one.
    pub work_trees: bool,
    /// The longest time of a command, in milliseconds, unless its call says otherwise.
    #[schemars(range(max = LONGEST_MS))]
    pub timeout_ms: NonZeroU64,
    /// The most bytes of its standard output, and of its standard error, that the model reads.
    pub output_bytes: NonZeroUsize,
    /// The names of variables of the environment that commands inherit besides the others, such as `GH_TOKEN`.
    #[schemars(extend("x-goondan" = "variable"))]
    pub env: Vec<String>,
    /// The names of the variables of the environment that commands inherit. Defaults to all but those that have
    /// secrets: what the bundle reads as a secret, `GOONDAN_…`, and names with `KEY`, `TOKEN`, `SECRET`, `PASSWORD` or
    /// `CREDENTIAL` in them.
    #[schemars(extend("x-goondan" = "variable"))]
    pub inherit_env: Option<Vec<String>>,
}

/// The longest that a command may run.
const LONGEST_MS: u64 = 3_600_000;

impl Default for Config {
    // F-BASE
    fn default() -> Self {
        const TIMEOUT: NonZeroU64 = NonZeroU64::new(30_000).unwrap();
        const OUTPUT: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
        let (timeout_ms, output_bytes) = (TIMEOUT, OUTPUT);
        Self { cwd: None, work_trees: false, timeout_ms, output_bytes, env: Vec::new(), inherit_env: None }
    }
}

/// The input of `bash__exec`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Exec {
    /// The command for bash. Pipes, redirections and several lines work. It reads no input, so use options such as
    /// `--yes` for programs that ask. Nothing is left of the shell after the call: not its variables, not its
    /// directory, and no process that it started in the background.
    #[schemars(length(min = 1))]
    command: String,
    /// The directory to run it in. A relative path starts at the usual one, which is the default.
    cwd: Option<PathBuf>,
    /// Variables of the environment that are added for this command.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// How long it may run, in milliseconds, at most an hour. Defaults to 30 seconds, unless this agent has another
    /// default; give builds and tests more.
    #[schemars(range(min = 1, max = LONGEST_MS))]
    timeout_ms: Option<u64>,
}

/// The input of `bash__script`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Script {
    /// The file of the script. A relative path starts at the usual directory, in which the script also runs.
    path: PathBuf,
    /// The arguments of the script, each passed on as it is.
    #[serde(default)]
    args: Vec<String>,
    /// The program that runs the script. Defaults to `bash`.
    #[serde(default = "bash")]
    shell: String,
    /// Variables of the environment that are added for this script.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// How long it may run, in milliseconds, at most an hour. Defaults to 30 seconds, unless this agent has another
    /// default.
    #[schemars(range(min = 1, max = LONGEST_MS))]
    timeout_ms: Option<u64>,
}

fn bash() -> String {
    "bash".to_owned()
}

/// The extension.
#[derive(Debug)]
pub struct Bash {
    api: ExtensionApi,
    config: Config,
    environment: Environment,
}

/// Lets the model run shell commands.
#[goondan::extension(name = "bash")]
impl Bash {
    #[init]
    fn new(api: ExtensionApi, mut config: Config, ctx: InitContext) -> Result<Self> {
        if config.work_trees {
            work_trees::note(&api)?;
        }
        if let Some(cwd) = &mut config.cwd {
            *cwd = std::path::absolute(ctx.bundle_root().unwrap_or(Path::new(".")).join(&cwd))?;
            if !cwd.is_dir() {
                let message = format!("`cwd` is {}, which is no directory", cwd.display());
                return Err(Error::new(ErrorCode::EXT_CONFIG, message).suggest("create it, or correct the path"));
            }
        }
        let environment = Environment::without_secrets(move || ctx.secret_variables().ok())
            .or_only(config.inherit_env.take())
            .with(std::mem::take(&mut config.env));
        Ok(Self { api, config, environment })
    }

    /// Runs a command with bash, and returns what it wrote and how it ended. A command that fails is not an error of
    /// this tool: look at `exitCode` and `stderr`. A command that runs for too long is ended, and `timedOut` is true.
    // The deadline of the tool comes after the deadline of any command, which the model reads.
    #[tool(timeout = "1h 1m", present = shown::exec)]
    async fn exec(&self, input: Exec, ctx: &ToolContext<'_>) -> Result<Ended> {
        let mut directory = self.directory(ctx).await?;
        if let Some(cwd) = input.cwd {
            directory.push(cwd);
        }
        let mut command = self.environment.command("bash");
        command.arg("-c").arg(input.command);
        self.run(ctx, command.into(), &directory, input.env, input.timeout_ms).await
    }

    /// Runs a script that is in a file, and returns what it wrote and how it ended, like `bash__exec`.
    #[tool(timeout = "1h 1m", present = shown::script)]
    async fn script(&self, input: Script, ctx: &ToolContext<'_>) -> Result<Ended> {
        let directory = self.directory(ctx).await?;
        let mut command = self.environment.command(input.shell);
        command.arg(directory.join(input.path)).args(input.args);
        self.run(ctx, command.into(), &directory, input.env, input.timeout_ms).await
    }
}

impl Bash {
    /// Returns the directory in which commands run.
    async fn directory(&self, ctx: &ToolContext<'_>) -> Result<PathBuf> {
        if self.config.work_trees
            && let Some(tree) = work_trees::open(&self.api).await?.next()
        {
            return Ok(tree);
        }
        Ok(match &self.config.cwd {
            Some(cwd) => cwd.clone(),
            None => ctx.workdir()?.to_owned(),
        })
    }

    async fn run(
        &self,
        ctx: &ToolContext<'_>,
        mut command: Command,
        directory: &Path,
        env: BTreeMap<String, String>,
        timeout_ms: Option<u64>,
    ) -> Result<Ended> {
        if let Some(note) = self.environment.note() {
            self.api.logger().info(note);
        }
        command.envs(env).current_dir(directory);
        let timeout = Duration::from_millis(timeout_ms.unwrap_or(self.config.timeout_ms.get()));
        run::run(ctx, command, directory, &Limits { timeout, bytes: self.config.output_bytes.get() }).await
    }
}
