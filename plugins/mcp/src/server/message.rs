//! The message of a server as far as it is read: its size is limited, and the excess of a list is left out.

use std::borrow::Cow;

use super::protocol::RoleClient;
use super::protocol::model::{ErrorCode, ErrorData, JsonRpcMessage, MetaObject, RequestId};
use super::protocol::service::RxJsonRpcMessage;
use goondan::json;
use goondan_text::visible;

use super::json::{Excess, Parts, check, members};
use crate::config::Sizes;

/// A message of a server.
pub(crate) type Message = RxJsonRpcMessage<RoleClient>;

/// The code of the errors that take the place of answers that cannot be read. The protocol has others.
const UNREADABLE: ErrorCode = ErrorCode(i32::MIN);
/// The member of the metadata of a list that names the missing part of it.
const ABRIDGED: &str = "ai.goondan/abridged";
/// The longest other member of a list, such as the cursor of its next page.
const LONGEST_MEMBER: usize = 4096;
/// The most elements of a list that are named because they are left out.
const NAMED: usize = 10;

/// Reads a message, if the text is one. An answer that cannot be read becomes an error, so that its request need not
/// wait for another.
pub(crate) fn read(text: &[u8], sizes: &Sizes) -> Option<Message> {
    let unreadable = match abridged(text, sizes) {
        Ok(abridged) => match json::from_slice(&abridged) {
            Ok(message) => return Some(message),
            Err(error) => format!("cannot be read: {error}"),
        },
        Err(excess) => reason(excess, sizes),
    };
    error(id(text), &unreadable)
}

/// Returns a message with the allowed length of its lists.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn abridged<'a>(text: &'a [u8], sizes: &Sizes) -> Result<Cow<'a, [u8]>, Excess> {
    if text.len() > sizes.message {
        return Err(Excess::Size);
    }
    let has_lists = |(name, value): (Cow<'_, [u8]>, &[u8])| {
        *name == *b"result" && members(value).any(|(name, _)| List::of(&name).is_some())
    };
    if !members(text).any(has_lists) {
        check(text, sizes.message)?;
        return Ok(Cow::Borrowed(text));
    }
    let mut message = Object::default();
    for (name, value) in members(text) {
        match &*name {
            b"result" => message.add(&name, &result(value, sizes)),
            _ => message.add(&name, value),
        }
    }
    let message = message.end();
    check(&message, sizes.message)?;
    Ok(Cow::Owned(message))
}

/// Returns the error that takes the place of an answer, for a request with an id. Its message describes the answer.
pub(crate) fn error(id: Option<RequestId>, reason: &str) -> Option<Message> {
    Some(JsonRpcMessage::error(ErrorData::new(UNREADABLE, reason.to_owned(), None), Some(id?)))
}

/// Returns whether an error took the place of an answer that cannot be read.
pub(crate) fn is_unreadable(error: &ErrorData) -> bool {
    error.code == UNREADABLE
}

/// Says why a text is not read.
pub(crate) fn reason(excess: Excess, sizes: &Sizes) -> String {
    match excess {
        Excess::Size => format!("is too long: `limits.messageBytes` is {}", sizes.message),
        Excess::Depth => "is nested too deeply".to_owned(),
    }
}

/// Returns which request a message answers, as far as it is there. A request has an id too, and a method.
pub(crate) fn id(text: &[u8]) -> Option<RequestId> {
    let mut id = None;
    for (name, value) in members(text) {
        match &*name {
            b"id" => id = json::from_slice(value).ok(),
            b"method" => return None,
            _ => {}
        }
    }
    id
}

/// Returns the request that a message answers, from its end alone. The ids that are sent are numbers.
pub(crate) fn id_at_end(end: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(end);
    let (_, rest) = text.rsplit_once("\"id\"")?;
    let number = rest.trim_start().strip_prefix(':')?.trim_start();
    let length = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..length].parse().ok().map(RequestId::Number)
}

/// The metadata about a list's omissions.
#[derive(Debug, Default, serde::Deserialize, serde::Serialize)]
#[serde(default)]
pub(crate) struct Abridged {
    /// The bytes of the entries of the list.
    pub(crate) bytes: usize,
    /// The items that are not in it, for the user.
    pub(crate) left_out: Vec<String>,
}

impl Abridged {
    /// Reads it from the metadata of a list.
    pub(crate) fn of(meta: Option<MetaObject>) -> Self {
        meta.and_then(|mut meta| json::from_value(meta.0.remove(ABRIDGED)?).ok()).unwrap_or_default()
    }
}

/// A list of the offers of a server.
#[derive(Clone, Copy)]
enum List {
    Tools,
    Resources,
    Prompts,
}

impl List {
    fn of(name: &[u8]) -> Option<Self> {
        match name {
            b"tools" => Some(Self::Tools),
            b"resources" => Some(Self::Resources),
            b"prompts" => Some(Self::Prompts),
            _ => None,
        }
    }

    /// Returns the members of an element that are read.
    fn members(self) -> &'static [&'static str] {
        match self {
            Self::Tools => &["name", "title", "description", "inputSchema", "annotations"],
            Self::Resources => &["uri", "name", "description", "mimeType"],
            Self::Prompts => &["name", "description", "arguments"],
        }
    }

    /// Checks an element, after `length` bytes of it.
    ///
    /// # Errors
    /// Why it is left out.
    fn check(self, element: &[u8], length: usize, sizes: &Sizes) -> Result<(), String> {
        match self {
            Self::Tools if length > sizes.tool => {
                Err(format!("it has {length} bytes, and `limits.toolBytes` is {}", sizes.tool))
            }
            _ => check(element, usize::MAX).map_err(|_| "it is nested too deeply".to_owned()),
        }
    }
}

/// Returns a result with lists, with their allowed length.
fn result(text: &[u8], sizes: &Sizes) -> Vec<u8> {
    let (mut result, mut abridged) = (Object::default(), Abridged::default());
    for (name, value) in members(text) {
        match List::of(&name) {
            Some(kind) => result.add(&name, &list(kind, value, sizes, &mut abridged)),
            None if *name == *b"_meta" || value.len() > LONGEST_MEMBER => {}
            None => result.add(&name, value),
        }
    }
    let meta = json!({ ABRIDGED: abridged });
    result.add(b"_meta", meta.to_string().as_bytes());
    result.end()
}

/// Returns a list of the elements that fit.
fn list(kind: List, text: &[u8], sizes: &Sizes, abridged: &mut Abridged) -> Vec<u8> {
    let (mut list, mut others) = (vec![b'['], 0_usize);
    for element in Parts::of(text) {
        let parts =
            || members(element).filter(|(name, _)| kind.members().iter().any(|read| read.as_bytes() == &**name));
        let length = parts().map(|(name, value)| name.len() + value.len()).sum();
        match kind.check(element, length, sizes) {
            Err(reason) if abridged.left_out.len() < NAMED => {
                let name = members(element).find(|(name, _)| **name == *b"name");
                let name = name.and_then(|(_, value)| json::from_slice::<String>(value).ok()).unwrap_or_default();
                let name: String = visible(&name).chars().take(64).collect();
                abridged.left_out.push(format!("`{name}`: {reason}"));
            }
            Ok(()) if abridged.bytes + length <= sizes.list => {
                abridged.bytes += length;
                if list.len() > 1 {
                    list.push(b',');
                }
                let mut short = Object::default();
                parts().for_each(|(name, value)| short.add(&name, value));
                list.extend(short.end());
            }
            _ => others += 1,
        }
    }
    if others > 0 {
        let limits = format!("`limits.toolBytes` is {}, and `limits.listBytes` {}", sizes.tool, sizes.list);
        abridged.left_out.push(format!("{others} more: {limits}"));
    }
    list.push(b']');
    list
}

/// The text of an object that is written member by member.
#[derive(Default)]
struct Object(Vec<u8>);

impl Object {
    /// Adds a member, unless its name needs escapes: none that is read does.
    fn add(&mut self, name: &[u8], value: &[u8]) {
        if name.iter().any(|byte| byte.is_ascii_control() || matches!(byte, b'"' | b'\\')) {
            return;
        }
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.push(b'"');
        self.0.extend_from_slice(name);
        self.0.extend_from_slice(b"\":");
        self.0.extend_from_slice(value);
    }

    fn end(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }
}
