//! Functions that the expansions of attributes call, and the messages of compile errors. Not part of the API.

pub mod absent;
pub mod params;
