//! The marks of tests as proofs of requirements, and the breaks that these proofs must notice.

pub mod marks;
pub mod table;

/// An error whose text is all there is to say.
pub type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;
