//! The library `shared`.
use shared as _;
