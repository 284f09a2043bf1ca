//! The runtime of goondan: it runs turns of agents over the ports to models, stores and routers. Programs import the
//! facade crate `goondan` instead of this one.
//!
//! # Layout
//! A module imports only modules above it in this list.
//!
//! | module | holds |
//! | --- | --- |
//! | `idle` | a run without a runtime, for tests and benchmarks of chains |
//! | `nearest` | suggestions for misspelt names |
//! | `schema` | JSON Schema validation |
//! | `live` | live questions, and deadlines that stand still while one is open |
//! | `ports` | the traits that others implement: models and their providers, stores, routers, observers |
//! | `models` | a model that plays a script, and one that records another |
//! | `state` | extension state while a conversation is open |
//! | `memory_store` | the store in memory |
//! | `bus` | the event bus of a conversation |
//! | `registry` | the tools that extensions have registered |
//! | `peers` | requests to other agents, and their answers |
//! | `policy`, `spec` | the parts of an agent |
//! | `attach` | extensions in one conversation: registering, becoming active, cleaning up |
//! | `turn` | one turn: the turn machine and its driver, steps, tool calls |
//! | `instance` | one conversation: its handle, its queue, opening and closing |
//! | `agent` | agents: the builder, reloads, the router within a program |
//! | `testing` | the harness for tests of extensions |
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[doc(hidden)]
pub mod idle;
#[doc(hidden)]
pub mod nearest;
pub mod schema;
mod showing;

mod live;
mod ports;

mod memory_queue;
mod memory_store;
mod models;

mod awaited;
mod bus;
mod peers;
mod registry;
mod state;

mod join;
mod policy;
mod spec;

mod attach;
mod turn;
mod updates;

mod instance;

mod agent;
#[cfg(feature = "testing")]
pub mod testing;

pub use ports::{
    AgentCall, AgentReply, BundlePath, CassetteMode, DeltaSink, Finding, FindingPlace, Findings, InstanceId, Model,
    ModelDelta, ModelProvider, ModelRequest, ModelResponse, Observer, ProviderContext, ProviderDescriptor, Queue,
    Router, Store, Told, ValueBy, Wants, find_provider, linked_providers, store,
};

pub use live::{LiveQuestion, LiveQuestions, LiveUpdate};

pub use memory_queue::MemoryQueue;
pub use memory_store::MemoryStore;
pub use models::{RecordedModel, ScriptItem, ScriptedModel};

pub use bus::EventStream;

#[doc(hidden)]
pub use join::join;
pub use policy::Policy;
pub use spec::Covers;

pub use turn::{Rewound, TurnStream};
pub use updates::TurnUpdate;

pub use attach::{ReloadRequest, ReloadRequests};
pub use instance::{BackgroundTurn, BackgroundTurnUpdate, BackgroundTurns, BackgroundUpdate, Instance, InstanceEvents};

pub use agent::{Agent, AgentBuilder, Change, ExtensionChange, LocalRouter, Reloaded};

/// For the expansion of [`model_provider!`].
#[doc(hidden)]
pub use inventory;
