//! The library `skills`.
use skills as _;
