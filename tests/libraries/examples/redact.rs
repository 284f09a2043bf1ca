//! The library `redact`.
use redact as _;
