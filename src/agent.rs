//! Running agents, and asking other agents and models.
//!
//! `Agent::builder` describes an agent: its model, its extensions, its store. An `Instance` is one conversation of it.
//!
//! ```
//! # #[cfg(feature = "runtime")] {
//! use goondan::Agent;
//! use goondan::agent::TurnUpdate;
//! use goondan::model::{ScriptItem, ScriptedModel};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let model = ScriptedModel::new([ScriptItem::say("hi")]);
//! let agent = Agent::builder("assistant").model(model).build()?;
//! let mut turn = agent.instance("user:42").await?.run_stream("hello");
//! while let Some(update) = turn.next().await {
//!     if let TurnUpdate::Text { text, .. } = update {
//!         print!("{text}");
//!     }
//! }
//! println!("{:?}", turn.finish().await?.finish_reason());
//! # Ok::<(), goondan::Error>(())
//! # })?;
//! # }
//! # Ok::<(), goondan::Error>(())
//! ```
//!
//! Extensions and tools ask other agents through [`AgentsApi`]; a `Router` brings the question there.

pub use goondan_core::{AgentRequest, AgentResponse, AgentsApi, RequestTarget, RequestTicket};
#[cfg(feature = "runtime")]
pub use goondan_runtime::{
    Agent, AgentBuilder, AgentCall, AgentReply, BackgroundTurn, BackgroundTurnUpdate, BackgroundTurns,
    BackgroundUpdate, Change, Covers, EventStream, ExtensionChange, Instance, InstanceEvents, LiveQuestion,
    LiveQuestions, LiveUpdate, LocalRouter, Observer, Policy, ReloadRequest, ReloadRequests, Reloaded, Rewound, Router,
    Told, TurnStream, TurnUpdate, Wants,
};
