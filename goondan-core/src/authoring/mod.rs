//! What expansions of the attributes call, and the words of compile errors. Not part of the API.

pub mod absent;
pub mod params;
