//! The library `ask`.
use ask as _;
