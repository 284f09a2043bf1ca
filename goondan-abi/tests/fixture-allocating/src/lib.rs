//! A library with another allocator: neither it nor the program can free memory that the other one allocated.

use dlmalloc::GlobalDlmalloc;

#[path = "../../fixture/src/everything.rs"]
mod everything;

pub use everything::Everything;

#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;
