//! The error type, and its conversions.
//!
//! Every failure is an [`Error`]: a stable [`ErrorCode`], a message, and where it is known a suggestion, the
//! extension and the function that failed, and the cause. Any standard error becomes one through `?`.

pub use goondan_core::{Error, ErrorCode, Report, Result, StandardError, StdErr};
