//! The ways to a server.

use std::path::{Path, PathBuf};
#[cfg(feature = "http")]
use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use goondan::{Error, ErrorCode, Result};
#[cfg(feature = "http")]
use tokio::time::timeout_at;
use tokio::time::{Instant, sleep_until, timeout};

#[cfg(feature = "http")]
use super::bearer::{Bearer, Requests};
#[cfg(feature = "http")]
use super::http::{self, Endpoint};
use super::live::{Live, Watch};
use super::process::Child;
use super::session::{Begin, Session};
use super::users::Users;
use crate::config::Transport;
use crate::failure;

/// The longest wait for the end of a process that did not shake hands.
const END: Duration = Duration::from_secs(1);

/// The way to a server.
pub(super) enum Place {
    Program(Program),
    #[cfg(feature = "http")]
    Endpoint(Endpoint),
}

/// A program that is started.
pub(super) struct Program {
    name: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    directory: PathBuf,
}

impl Place {
    #[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "only requests have tokens"))]
    pub(super) fn new(transport: &Transport, root: &Path, users: &Users) -> Result<Self> {
        match transport {
            Transport::Stdio { command, env, cwd } => {
                let Some((name, args)) = command.split_first() else {
                    return Err(Error::new(ErrorCode::EXT_CONFIG, "`transport.command` is empty"));
                };
                let env = env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let directory = cwd.as_ref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd));
                Ok(Self::Program(Program { name: name.clone(), args: args.to_vec(), env, directory }))
            }
            #[cfg(feature = "http")]
            Transport::Http { endpoint, headers, auth } => {
                let bearer = auth.as_ref().map(|auth| Bearer::new(auth, Arc::clone(users)));
                Endpoint::new(endpoint, headers, bearer).map(Self::Endpoint)
            }
            #[cfg(not(feature = "http"))]
            Transport::Http { .. } => {
                Err(Error::new(ErrorCode::EXT_CONFIG, "this build has no transport of the type `http`")
                    .suggest("build the extension `mcp` with its feature `http`"))
            }
        }
    }

    pub(super) async fn open(
        &self,
        begin: Begin,
        connect: Duration,
        limit: Instant,
        watch: Weak<dyn Watch>,
    ) -> Result<Live> {
        match self {
            Self::Program(program) => program.open(begin, connect, limit, watch).await,
            #[cfg(feature = "http")]
            Self::Endpoint(endpoint) => {
                let unreachable = |problem: &str| {
                    let message = format!("the MCP server at `transport.endpoint` cannot be reached: {problem}");
                    Error::new(failure::START, message)
                };
                // Before a session begins, which would say in the log that it failed.
                if let Some(bearer) = &endpoint.bearer
                    && let Err(error) = bearer.needs_no_sign_in().await
                {
                    return Err(unreachable(&error.message()).with_detail(failure::SIGN_IN, true));
                }
                let requests = Requests::new(http::client(connect)?, endpoint.bearer.clone(), begin.sizes);
                let session = Session::over_http(endpoint, requests, begin);
                match timeout_at(limit, session).await {
                    Ok(Ok(session)) => Ok(Live::without_process(session)),
                    Ok(Err(error)) => Err(unreachable(&error.message())),
                    Err(_) => Err(unreachable(&format!("it did not answer within {connect:?}"))),
                }
            }
        }
    }
}

impl Program {
    async fn open(&self, begin: Begin, connect: Duration, limit: Instant, watch: Weak<dyn Watch>) -> Result<Live> {
        let Self { name, args, env, directory } = self;
        let hearing = Weak::clone(&watch);
        let heard = move |line: &str| {
            if let Some(watch) = hearing.upgrade() {
                watch.heard(line);
            }
        };
        let Child { mut process, input, output, stderr } = Child::start(name, args, env, directory, heard).await?;
        let session = Session::over_pipes(output, input, begin);
        let problem = tokio::select! {
            session = session => match session {
                Ok(session) => return Ok(Live::with_process(session, process, stderr, watch)),
                Err(error) => match timeout(END, process.wait()).await {
                    Ok(Ok(status)) => format!("ended at once: {status}"),
                    _ => format!("did not shake hands: {}", error.message()),
                },
            },
            status = process.wait() => match status {
                Ok(status) => format!("ended at once: {status}"),
                Err(error) => format!("cannot be awaited: {error}"),
            },
            () = sleep_until(limit) => format!("did not shake hands within {connect:?}"),
        };
        // Its own children may hold its standard error open.
        drop(process);
        Err(Error::new(failure::START, format!("the MCP server `{name}` {problem}; {}", stderr.last_words().await)))
    }
}
