//! The library `tool-search`.
use tool_search as _;
