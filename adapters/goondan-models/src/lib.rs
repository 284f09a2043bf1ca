//! Language models over HTTP.
//!
//! # Layout
//! A module imports only modules above it in this list.
//!
//! | module | holds |
//! | --- | --- |
//! | `http` | requests and responses, limits of time and size, failures, when to ask again |
//! | `answer` | an answer while it arrives: parts that grow |
//! | `wire` | the interfaces of providers: a request becomes bytes, and events become parts |
//! | `model` | [`HttpModel`]: a [`Model`](goondan_core::Model) over a wire |
//! | `config` | [`ModelConfig`]: what a bundle says about a model |
//!
//! A wire does no input and output. It is tested with bytes alone, and `http` with a wire of its own.

pub mod http;

mod answer;
pub mod wire;

mod model;

mod config;

pub use answer::{Answer, Key};
pub use config::{ModelConfig, Provider, RetryConfig, TimeoutConfig};
pub use model::HttpModel;
