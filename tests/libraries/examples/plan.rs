//! The library `plan`.
use plan as _;
