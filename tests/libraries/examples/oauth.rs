//! The library `oauth`.
use oauth as _;
