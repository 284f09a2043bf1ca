//! Small extensions, which a bundle names one by one: tools that ask other agents, give them tasks, take JSON
//! apart, change text, and wait.

pub mod agents;
pub mod json_query;
pub mod subagents;
pub mod text_transform;
pub mod wait;
