//! Keeps the memory of this process, which has keys, from other processes of its user.
// ENV-01

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Lets no process without the rights of an administrator read the memory and the environment of this one, and leaves
/// no core file. Processes that it starts are not concerned. Returns the failures, for the log.
pub(crate) fn protect() -> Vec<String> {
    let mut unprotected = Vec::new();
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        unprotected.push(format!("other processes of this user can read the keys of this one: {error}"));
    }
    // The hard limit stays, so that commands of an agent can set their own.
    let limited = getrlimit(Resource::RLIMIT_CORE).and_then(|(_, hard)| setrlimit(Resource::RLIMIT_CORE, 0, hard));
    if let Err(error) = limited {
        unprotected.push(format!("a core file of this process would have its keys: {error}"));
    }
    unprotected
}
