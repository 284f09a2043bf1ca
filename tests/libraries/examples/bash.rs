//! The library `bash`.
use bash as _;
