//! The library `logging`.
use logging as _;
