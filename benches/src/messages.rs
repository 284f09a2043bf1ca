//! The messages of a base, and message events for it.

use std::sync::Arc;

use goondan::conversation::{Message, MessageEvent};

/// Makes `number` messages.
pub fn base(number: usize) -> Vec<Arc<Message>> {
    (0..number).map(|n| Arc::new(Message::user("text").with_id(format!("m{n}")))).collect()
}

/// Makes the event `n` of `number` over a base of `base` messages: appends, replacements and removals alternate, with
/// targets that are spread over the whole base.
pub fn event(n: usize, number: usize, base: usize) -> MessageEvent {
    let target = format!("m{}", n * base / number);
    match n % 3 {
        0 => MessageEvent::append(Message::user("text").with_id(format!("n{n}"))),
        1 => MessageEvent::replace(target.as_str(), Message::user("other").with_id(target.as_str())),
        _ => MessageEvent::remove(target.as_str()),
    }
}
