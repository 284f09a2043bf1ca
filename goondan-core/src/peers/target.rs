//! Whom a request asks: another agent, or a model.

use std::fmt;

use crate::name::ModelName;

/// Whom an [`AgentRequest`](super::AgentRequest) asks.
// D-33: two variants and not one text, so that no name that a model writes reaches a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestTarget {
    /// Another agent, by its name.
    Agent(String),
    /// One of the models that the running agent may call, by its name; `None` is the agent's own.
    Model(Option<ModelName>),
}

impl fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(name) => f.write_str(name),
            Self::Model(Some(name)) => write!(f, "the model `{name}`"),
            Self::Model(None) => f.write_str("the agent's model"),
        }
    }
}
