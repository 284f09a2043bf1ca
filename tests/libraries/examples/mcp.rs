//! The library `mcp`.
use mcp as _;
