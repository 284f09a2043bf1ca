//! The library `retry`.
use retry as _;
