//! The library `basics`.
use basics as _;
