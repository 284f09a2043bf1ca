//! The port to persistence, and the stores in memory and in files.

#[doc(hidden)]
pub use goondan_file_store::{Disk, DiskFile, OpenMode, RealDisk, StorePath};
pub use goondan_file_store::{
    FileQueue, FileStore, Fsync, StoredConversation, StoredFault, Syncs, agreements_dir, state_root, workspace_id,
};
pub use goondan_runtime::store::{
    AskedAgain, Commit, Durability, EmittedBy, EndedTurn, EventDigest, Facts, InstanceId, InstancePage, InstanceQuery,
    InstanceStatus, Interrupted, JoinedEvent, Journal, Opened, Reached, Store, StoredInstance, Suspend, TurnOutcome,
    TurnRecord, TurnStart,
};
pub use goondan_runtime::{MemoryQueue, MemoryStore, Queue};
