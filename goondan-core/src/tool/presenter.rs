//! Presenters of tool calls, and the calls as they read them.
// PRESENT-01

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ToolReply, WireReply};
use crate::conversation::ToolOutput;
use crate::error::Result;
use crate::presentation::{Presentation, text_of};

/// A tool call, as its [`Presenter`] reads it.
#[derive(Clone, Copy, Debug)]
pub struct ShownCall<'a> {
    args: &'a Map<String, Value>,
    reply: Option<&'a ToolReply>,
}

impl<'a> ShownCall<'a> {
    /// A call with these arguments, and with this reply once it has ended.
    pub fn new(args: &'a Map<String, Value>, reply: Option<&'a ToolReply>) -> Self {
        Self { args, reply }
    }

    /// Returns the arguments.
    pub fn args(&self) -> &'a Map<String, Value> {
        self.args
    }

    /// Returns an argument as text: a string as it is, another value as JSON, and one that is missing as no text.
    pub fn arg(&self, name: &str) -> Cow<'a, str> {
        self.args.get(name).filter(|value| !value.is_null()).map_or(Cow::Borrowed(""), text_of)
    }

    /// Returns the reply of the tool; `None` before the end of the call, and if it ended with an error.
    pub fn reply(&self) -> Option<&'a ToolReply> {
        self.reply
    }

    /// Returns a member of the reply, if that is a JSON object.
    pub fn output(&self, name: &str) -> Option<&'a Value> {
        match self.reply?.output() {
            ToolOutput::Json(value) => value.get(name),
            _ => None,
        }
    }
}

/// Presents the calls of a tool to people: a function of a [`ShownCall`] that returns text or a [`Presentation`].
///
/// It is called before the handler runs, and again when the call has ended. It is pure: it reads the call, and no file,
/// clock or state. It must return within 10 ms. If it panics, or takes longer twice in a row, the call is presented as
/// one of a tool without a presenter.
///
/// ```
/// use goondan::tool::{Presentation, Presenter, ShownCall, ToolOutcome};
/// use serde_json::{Value, json};
///
/// fn found(call: &ShownCall<'_>) -> Presentation {
///     let presentation = Presentation::new(format!("{} in {}", call.arg("pattern"), call.arg("path")));
///     match call.output("count").and_then(Value::as_u64) {
///         Some(0) => presentation.outcome(ToolOutcome::failed("nothing found")),
///         Some(count) => presentation.outcome(ToolOutcome::ok(format!("{count} found"))),
///         None => presentation,
///     }
/// }
///
/// let (args, reply) = (json!({ "pattern": "fn main", "path": "src" }), json!({ "count": 2 }).into());
/// let presenter: &dyn Presenter = &found;
/// let shown = presenter.present(&ShownCall::new(args.as_object().unwrap(), Some(&reply)))?;
/// assert_eq!(shown.to_string(), "fn main in src · 2 found");
/// # Ok::<(), goondan::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no presenter of a tool",
    note = "write `fn present(call: &ShownCall<'_>) -> Presentation`, or let it return a `String`"
)]
pub trait Presenter: Send + Sync {
    /// Returns the presentation of the call.
    ///
    /// # Errors
    /// When it has none. The error is logged once, and the call is presented by its arguments.
    fn present(&self, call: &ShownCall<'_>) -> Result<Presentation>;
}

impl<F, P> Presenter for F
where
    F: Fn(&ShownCall<'_>) -> P + Send + Sync,
    P: Into<Presentation>,
{
    fn present(&self, call: &ShownCall<'_>) -> Result<Presentation> {
        Ok(self(call).into())
    }
}

/// A [`ShownCall`] as it crosses to another binary.
#[derive(Debug, Serialize, Deserialize)]
pub struct WireShownCall {
    args: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<WireReply>,
}

impl From<&ShownCall<'_>> for WireShownCall {
    fn from(call: &ShownCall<'_>) -> Self {
        Self { args: call.args.clone(), reply: call.reply.cloned().map(WireReply) }
    }
}

impl WireShownCall {
    /// Returns the values that a presenter reads.
    pub fn call(&self) -> ShownCall<'_> {
        ShownCall::new(&self.args, self.reply.as_ref().map(|WireReply(reply)| reply))
    }
}

/// Presenter that inserts arguments of the call into a text: `{path} to {target}`. `{{` and `}}` are braces.
///
/// ```
/// use goondan::tool::{LineTemplate, Presenter, ShownCall};
///
/// const COPY: LineTemplate = LineTemplate::new("{from} to {to}");
/// let args = serde_json::json!({ "from": "a.txt", "to": "b.txt" });
/// assert_eq!(COPY.present(&ShownCall::new(args.as_object().unwrap(), None))?.line, "a.txt to b.txt");
/// assert_eq!(COPY.names().collect::<Vec<_>>(), ["from", "to"]);
/// # Ok::<(), goondan::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineTemplate(&'static str);

impl LineTemplate {
    /// A template. A brace without its other half is text.
    pub const fn new(text: &'static str) -> Self {
        Self(text)
    }

    /// Returns the names of the arguments in it.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.pieces().filter_map(|piece| match piece {
            Piece::Argument(name) => Some(name),
            Piece::Text(_) => None,
        })
    }

    fn pieces(self) -> impl Iterator<Item = Piece> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (piece, after) = Piece::first_of(rest)?;
            rest = after;
            Some(piece)
        })
    }
}

impl Presenter for LineTemplate {
    fn present(&self, call: &ShownCall<'_>) -> Result<Presentation> {
        let mut line = String::new();
        for piece in self.pieces() {
            match piece {
                Piece::Text(text) => line.push_str(text),
                Piece::Argument(name) => line.push_str(&call.arg(name)),
            }
        }
        Ok(Presentation::new(line))
    }
}

/// A piece of a template.
enum Piece {
    Text(&'static str),
    Argument(&'static str),
}

impl Piece {
    /// Returns the first piece of `text`, and the rest.
    fn first_of(text: &'static str) -> Option<(Self, &'static str)> {
        let brace = text.find(['{', '}']);
        match brace {
            None if text.is_empty() => None,
            None => Some((Self::Text(text), "")),
            Some(0) if text.starts_with("{{") || text.starts_with("}}") => Some((Self::Text(&text[..1]), &text[2..])),
            Some(0) => match text.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
                Some((name, after)) => Some((Self::Argument(name), after)),
                None => Some((Self::Text(&text[..1]), &text[1..])),
            },
            Some(at) => Some((Self::Text(&text[..at]), &text[at..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(template: &'static str, args: &Value) -> String {
        LineTemplate::new(template).present(&ShownCall::new(args.as_object().unwrap(), None)).unwrap().line
    }

    #[test]
    fn a_template_shows_arguments_within_text() {
        let args = json!({ "path": "a b", "lines": 3, "all": null });
        for (template, line) in [
            ("{path}", "a b"),
            ("{path}:{lines}", "a b:3"),
            ("<{all}{none}>", "<>"),
            ("{{path}} {path}", "{path} a b"),
            ("{path", "{path"),
            ("path}", "path}"),
            ("", ""),
        ] {
            assert_eq!(shown(template, &args), line, "{template}");
        }
    }
}
