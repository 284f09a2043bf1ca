//! The library `message-compaction`.
use message_compaction as _;
