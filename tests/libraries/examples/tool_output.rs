//! The library `tool-output`.
use tool_output as _;
