//! The words of a server while a call runs: its progress is told, and the person is asked its questions.
// ASK-04

use std::pin::pin;

use goondan::decision::Question;
use goondan::tool::ToolContext;
use goondan::{ErrorCode, Map, Value};
use goondan_text::visible;
use tokio::sync::mpsc::Receiver;

use crate::server::{Asked, Elicitation, ElicitationKind, Response, Said, secret_field, with_defaults};

/// Hears the server while `answer` is waited for.
pub(super) async fn hearing<T>(ctx: &ToolContext<'_>, mut heard: Receiver<Said>, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    loop {
        let said = tokio::select! {
            // News from before the answer are told before it.
            biased;
            Some(said) = heard.recv() => said,
            answer = &mut answer => {
                // It may have come since `heard` was looked at, and news from before it too.
                while let Ok(said) = heard.try_recv() {
                    tell(ctx, said);
                }
                return answer;
            }
        };
        if let Some(asked) = tell(ctx, said) {
            let mut answered = pin!(answered(ctx, asked));
            tokio::select! {
                biased;
                () = &mut answered => {}
                // The call has ended, and its question with it.
                answer = &mut answer => return answer,
            }
        }
    }
}

/// Tells the news of a server about a call. Returns its questions.
fn tell(ctx: &ToolContext<'_>, said: Said) -> Option<Asked> {
    match said {
        Said::Progress { done, total, text } => ctx.progress(done, total, &visible(&text)),
        Said::Logged(level, text) => ctx.logger().log(level, text),
        Said::Asked(asked) => return Some(asked),
    }
    None
}

/// Asks the person, unless the server takes its question back.
async fn answered(ctx: &ToolContext<'_>, Asked { elicitation, mut answer }: Asked) {
    let response = {
        let (response, gone) = (pin!(respond(ctx, elicitation)), pin!(answer.closed()));
        tokio::select! {
            response = response => response,
            () = gone => return,
        }
    };
    // The server may have stopped waiting.
    _ = answer.send(response);
}

async fn respond(ctx: &ToolContext<'_>, Elicitation { message, kind }: Elicitation) -> Response {
    let (question, schema) = match kind {
        ElicitationKind::Url(url) => (Question::for_address(message, url), None),
        ElicitationKind::Form(schema) => {
            if let Some(field) = secret_field(&schema) {
                ctx.logger().warn(format!(
                    "MCP server: it asks for a secret by the field `{field}` of a form, which is declined: it should let \
                     the user open a page"
                ));
                return Response::Decline;
            }
            match schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty) {
                true => (Question::new(message), None),
                false => (Question::new(message).expecting_schema(schema.clone()), Some(schema)),
            }
        }
    };
    match (ctx.ask_live::<Value>(question).await, schema) {
        (Ok(Value::Object(content)), Some(schema)) => Response::Accept(with_defaults(&schema, content)),
        (Ok(_), _) => Response::Accept(Map::new()),
        (Err(error), _) if *error.code() == ErrorCode::TOOL_REJECTED => Response::Decline,
        (Err(error), _) => {
            ctx.logger().info(format!("MCP server: its question is not answered: {}", error.message()));
            Response::Cancel
        }
    }
}
