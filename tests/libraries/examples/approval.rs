//! The library `approval`.
use approval as _;
