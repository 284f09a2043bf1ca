//! The work whose instructions `benches/count.sh` counts: the first argument names it, the second is the number of
//! repetitions. Only what happens inside [`counted`] is counted.
#![allow(clippy::expect_used, clippy::panic, reason = "a bench stops at the first error")]

use std::env;
use std::hint::black_box;
use std::sync::Arc;

use goondan::Instance;
use goondan::conversation::{Conversation, Message};
use goondan_benches::agents::{self, Layers};
use goondan_benches::{messages, runtime};

/// The number of turns before the first that is counted. After them all tables have grown.
const WARM_UP: usize = 40;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let [what, number] = &args[..] else { panic!("usage: counted WORK REPETITIONS") };
    let number: usize = number.parse().expect("a number");
    let one = Layers { keep: 20, ..Layers::default() };
    match what.as_str() {
        "layers of the turn" => turns(Layers { turn: number, ..one }, 0, 100),
        "layers of the step" => turns(Layers { step: number, ..one }, 0, 100),
        "skipping layers of the step" => turns(Layers { step: number, skipping: true, ..one }, 0, 100),
        "layers of the tool call" => turns(Layers { tool_call: number, ..one }, 1, 100),
        "layers that project" => turns(Layers { projecting: number, ..one }, 0, 100),
        "layers that prepare an answer" => turns(Layers { preparing: number, ..one }, 0, 100),
        "layers that review" => turns(Layers { reviewing: number, ..one }, 0, 100),
        "pieces" => turns(Layers { pieces: number, ..one }, 0, 100),
        "transformed pieces" => turns(Layers { pieces: number, transforming: 1, ..one }, 0, 100),
        "layers that prepare a reply" => turns(Layers { replying: number, ..one }, 1, 100),
        "turns" => turns(Layers { turn: 10, step: 10, tool_call: 10, keep: 100, ..one }, 2, number),
        "observed turns" => {
            turns(Layers { turn: 10, step: 10, tool_call: 10, keep: 100, observed: true, ..one }, 2, number)
        }
        "turns beside an observer" => {
            turns(Layers { turn: 10, step: 10, tool_call: 10, keep: 100, asked: true, ..one }, 2, number)
        }
        "watched turns" => {
            turns(Layers { turn: 10, step: 10, tool_call: 10, keep: 100, watched: true, ..one }, 2, number)
        }
        "steps over 1,000 messages" => turns(Layers { step: 10, keep: 1_000, observed: true, ..one }, 0, number),
        "message events" => events(number),
        _ => panic!("{what} is not known"),
    }
}

/// Runs the work. It is a function, because callgrind counts between its entry and its return.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    black_box(work)();
}

fn turns(layers: Layers, calls: usize, number: usize) {
    let runtime = runtime();
    let instance = runtime.block_on(agents::instance(layers, calls));
    let turn = |instance: &Instance| {
        runtime.block_on(instance.run("hi")).expect("a turn");
    };
    let warm_up = WARM_UP.max(layers.keep);
    (0..warm_up).for_each(|_| turn(&instance));
    counted(&mut || (0..number).for_each(|_| turn(&instance)));
}

/// Applies events over a base of 10,000 messages.
fn events(number: usize) {
    let base = messages::base(10_000);
    let mut events: Vec<_> = (0..number).map(|n| messages::event(n, number, base.len())).collect();
    let (mut conversation, _) = Conversation::from_base(base.iter().map(Arc::<Message>::clone));
    counted(&mut || {
        for event in events.drain(..) {
            conversation.apply(event).expect("the event applies");
        }
    });
}
