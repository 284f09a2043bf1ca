//! Owns an allocator. What it has allocated, that of the program cannot free, nor the other way round.

use dlmalloc::GlobalDlmalloc;

#[path = "../../fixture/src/everything.rs"]
mod everything;

pub use everything::Everything;

#[global_allocator]
static ALLOCATOR: GlobalDlmalloc = GlobalDlmalloc;
