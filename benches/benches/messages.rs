//! What 1,000 message events cost over bases of several lengths, beside pushing as many messages onto a vector.
#![allow(clippy::expect_used, reason = "a bench stops at what cannot be")]

use std::hint::black_box;
use std::sync::Arc;

use goondan::{Conversation, Message, MessageEvent};
use goondan_benches::{head, row, side_by_side, time};

const EVENTS: usize = 1_000;

fn main() {
    head("1,000 message events", "Vec::push");
    for base in [100, 10_000, 100_000] {
        let messages: Vec<_> = (0..base).map(|n| Arc::new(Message::user("text").with_id(format!("m{n}")))).collect();
        let events: Vec<_> = (0..EVENTS).map(|n| event(n, base)).collect();
        let ours = || {
            let (mut conversation, _) = Conversation::from_base(messages.iter().cloned());
            let events = events.clone();
            time(|| {
                for event in events {
                    conversation.apply(event).expect("the event applies");
                }
                black_box(&conversation);
            })
        };
        let yardstick = || {
            let (mut all, events) = (messages.clone(), events.clone());
            time(|| {
                for event in events {
                    if let MessageEvent::Append { message } | MessageEvent::Replace { message, .. } = event {
                        all.push(message);
                    }
                }
                black_box(&all);
            })
        };
        row(&format!("over {base} messages"), 1, side_by_side(30, ours, yardstick));
    }
}

/// Appends, replaces and removes in turns, all over the base.
fn event(n: usize, base: usize) -> MessageEvent {
    let target = format!("m{}", n * base / EVENTS);
    match n % 3 {
        0 => MessageEvent::append(Message::user("text").with_id(format!("n{n}"))),
        1 => MessageEvent::replace(target.as_str(), Message::user("other").with_id(target.as_str())),
        _ => MessageEvent::remove(target.as_str()),
    }
}
