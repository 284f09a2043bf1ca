//! The cost of 1,000 message events over bases of several lengths, beside pushing as many messages onto a vector.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::hint::black_box;

use goondan::conversation::{Conversation, MessageEvent};
use goondan_benches::messages::{self, event};
use goondan_benches::{head, row, side_by_side, time};

const EVENTS: usize = 1_000;

fn main() {
    head("1,000 message events", "Vec::push");
    for base in [100, 10_000, 100_000] {
        let messages = messages::base(base);
        let events: Vec<_> = (0..EVENTS).map(|n| event(n, EVENTS, base)).collect();
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
