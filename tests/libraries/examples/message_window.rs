//! The library `message-window`.
use message_window as _;
