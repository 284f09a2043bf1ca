//! Language models over HTTP.
//!
//! # Layout
//! A module imports only modules above it in this list.
//!
//! | module | holds |
//! | --- | --- |
//! | `http` | requests and responses, limits of time and size, failures, when to ask again |
//! | `surrogates` | mends JSON in which a character was cut |
//! | `answer` | an answer while it arrives: parts that grow |
//! | `aws` | signatures of requests to services of AWS, and their keys |
//! | `wire` | the interfaces of providers: a request becomes bytes, and events become parts |
//! | `cassette` | recorded exchanges with providers |
//! | `model` | [`HttpModel`]: a [`Model`](goondan_runtime::Model) over a wire |
//! | `config` | [`ModelConfig`]: the settings of a model in a bundle |
//! | `providers` | the providers that bundles can name |
//! | `registration` | registers them |
//!
//! ```
//! use goondan::models::wire::Anthropic;
//! use goondan::models::{ModelConfig, providers};
//! use goondan::{Agent, Secret};
//!
//! let mut config = ModelConfig::new("claude-sonnet-4-5");
//! config.api_key = Some(Secret::new("sk-ant-0123456789"));
//! let agent = Agent::builder("assistant").model(config.model(&providers::ANTHROPIC, Anthropic)?).build()?;
//! # Ok::<(), goondan::Error>(())
//! ```
//!
//! A wire does no input and output. It is tested with bytes alone, and `http` with a wire of its own.
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod http;

mod surrogates;

mod answer;

#[cfg(feature = "bedrock")]
mod aws;

pub mod wire;

pub mod cassette;

mod model;

mod config;

pub mod providers;

mod registration;

pub use answer::{Answer, AnswerLimits, Key};
pub use cassette::Cassette;
pub use config::{ModelConfig, Problem, Provider, RetryConfig, TimeoutConfig};
pub use model::HttpModel;
