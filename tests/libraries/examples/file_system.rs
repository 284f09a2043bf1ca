//! The library `file-system`.
use file_system as _;
