//! Tool calls that wait for a decision: questions, waits and decisions.
//!
//! A tool-call layer asks by [`ToolCallContext::ask`](crate::middleware::ToolCallContext::ask), or a tool by
//! [`ToolReply::ask`](crate::ToolReply::ask), and the turn is suspended: its result lists the [`Wait`]s.
#![cfg_attr(feature = "runtime", doc = "[`Instance::decide`](crate::Instance::decide) goes on with it.")]

pub use goondan_core::{
    AnswerKind, AnswerOption, AskedQuestion, Decision, LiveWait, OnInput, Question, QuestionId, Unanswered, Verdict,
    Wait,
};
