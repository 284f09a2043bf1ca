//! Tokens for tool calls: where an access has to be allowed first, the person is asked, and the call goes on.
// ASK-04

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use goondan::decision::Question;
use goondan::prelude::*;
use goondan::{ErrorCode, Value};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::answer::{Answer, Authorization, Token};
use crate::request::{TokenRequest, ask, token};

/// The time in which an access arrives after the person has said that it is allowed.
const ARRIVAL: Duration = Duration::from_secs(10);
/// The number of times that the person is asked.
const ROUNDS: usize = 3;

/// Returns an access token for a tool call. Where a person has to allow the access first, it is asked for by a live
/// question, and the token of that is returned; the tool declares `#[tool(asks)]`.
///
/// ```
/// use goondan::prelude::*;
/// use goondan_oauth_client::{TokenRequest, get_access_token_in_call};
///
/// # struct Hub;
/// # #[goondan::extension(name = "hub")]
/// # impl Hub {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// /// Lists the repositories of the user.
/// #[tool(effect = read, asks)]
/// async fn repositories(&self, ctx: &ToolContext<'_>, api: &ExtensionApi) -> Result<()> {
///     let token = get_access_token_in_call(ctx, api, &TokenRequest::new("hub")).await?;
///     let _authorization = format!("Bearer {}", token.text.expose());
///     Ok(())
/// }
/// # }
/// ```
///
/// # Errors
/// As [`get_access_token`](crate::get_access_token), the message of `authorizationRequired` if there is no person to
/// ask; `E_TOOL_REJECTED` when the person says no.
pub async fn get_access_token_in_call(
    ctx: &ToolContext<'_>,
    api: &ExtensionApi,
    request: &TokenRequest,
) -> Result<Token> {
    for _ in 1..ROUNDS {
        match ask(api, request).await? {
            Answer::AuthorizationRequired { authorization } => {
                if !allow(ctx, api, &request.app, &authorization).await? {
                    break;
                }
            }
            answer => return token(request, answer),
        }
    }
    token(request, ask(api, request).await?)
}

/// Lets the person allow an access, and waits until it is granted, within a tool call. Returns false if there is no
/// person to ask, or if it was not granted.
///
/// # Errors
/// `E_TOOL_REJECTED` when the person says no.
pub async fn allow(
    ctx: &ToolContext<'_>,
    api: &ExtensionApi,
    app: &str,
    authorization: &Authorization,
) -> Result<bool> {
    let (sender, mut granted) = mpsc::unbounded_channel();
    let wanted = app.to_owned();
    let heard = move |event: Event| {
        if event.args().first().is_some_and(|grant| grant["app"] == *wanted) {
            // The call may have ended.
            _ = sender.send(());
        }
        std::future::ready(Ok(()))
    };
    let _subscription = api.events().on("auth.granted", heard)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let left = Duration::from_secs(authorization.expires_at).saturating_sub(now);
    let text = format!("Allow access to `{app}`: {}", authorization.message);
    let question = Question::for_address(text, authorization.url.as_str()).expires_after(left);
    let said = {
        let (mut said, mut granted) = (pin!(ctx.ask_live::<Value>(question)), pin!(granted.recv()));
        // The question is gone when the access is there.
        poll_fn(|cx| match granted.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => said.as_mut().poll(cx).map(Some),
        })
        .await
    };
    match said {
        None => Ok(true),
        Some(Ok(_)) => Ok(timeout(ARRIVAL, granted.recv()).await.is_ok_and(|granted| granted.is_some())),
        Some(Err(error)) if [ErrorCode::NOT_ANSWERED, ErrorCode::TOOL_ASKS].contains(error.code()) => Ok(false),
        Some(Err(error)) => Err(error),
    }
}
