//! Live questions: the handler of a tool waits for the answer of a person now, while the deadlines of its turn stand
//! still.
// ASK-04

mod asker;
mod clock;
mod errors;
mod limit;
mod question;
mod subscription;

pub(crate) use asker::{Asker, Spent};
pub(crate) use clock::Clock;
pub(crate) use errors::{check_value, invalid, not_waiting, taken};
pub(crate) use limit::within;
pub use question::LiveQuestion;
pub(crate) use question::{Questions, Unanswerable};
pub use subscription::{LiveQuestions, LiveUpdate};
