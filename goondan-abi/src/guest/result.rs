//! Handles of results that the host keeps.

use goondan_core::Result;
use goondan_core::linkage::{RemoteHost, RemoteResult};

use super::{host, missing};
use crate::bytes::{OwnedBuffer, ask};
use crate::table::{Buffer, HANDLE, STEP, TOOL_CALL, TURN, Text};

/// The results of one kind. The number of a result is the address in its handle.
struct HostResults(u32);

static TURNS: HostResults = HostResults(TURN);
static STEPS: HostResults = HostResults(STEP);
static TOOL_CALLS: HostResults = HostResults(TOOL_CALL);

fn of_kind(kind: usize) -> Result<&'static HostResults> {
    [&TURNS, &STEPS, &TOOL_CALLS]
        .into_iter()
        .find(|results| results.0 as usize == kind)
        .ok_or_else(|| missing("kind of result"))
}

/// Takes over the result that a future of `run_next` returned.
pub(super) fn from_handle(output: OwnedBuffer) -> Result<RemoteResult> {
    if !output.is_handle() {
        return Err(missing("result"));
    }
    let Buffer { data, len: kind, .. } = output.into_raw();
    of_kind(kind).map(|results| RemoteResult::new(results, data.expose_provenance()))
}

/// Returns the handle of a result of `kind`, to be passed back to the host.
pub(super) fn into_handle(kind: u32, result: usize) -> Buffer {
    let data = std::ptr::with_exposed_provenance_mut(result);
    Buffer { data, len: kind as usize, extra: HANDLE, free: None }
}

impl RemoteHost for HostResults {
    fn read(&self, result: usize, name: &'static str) -> Result<Vec<u8>> {
        let (name, result) = (Text::new(name.as_bytes()), std::ptr::with_exposed_provenance(result));
        // SAFETY: `RemoteResult` passes only numbers of `from_handle`, and owns the handle; the name is borrowed for
        // this function.
        let read = ask(|output| unsafe { (host().result_read)(self.0, result, name, output) });
        Ok(read?.ok_or_else(|| missing("field of a result"))?.bytes().to_vec())
    }

    fn write(&self, result: usize, name: &'static str, json: &[u8]) -> Result<()> {
        let (name, json) = (Text::new(name.as_bytes()), Text::new(json));
        let result = std::ptr::with_exposed_provenance_mut(result);
        // SAFETY: As above; results are written by the owner of the `RemoteResult`, so not concurrently.
        ask(|error| unsafe { (host().result_write)(self.0, result, name, json, error) }).map(|_| ())
    }

    fn release(&self, result: usize) {
        // SAFETY: `RemoteResult` owns the handle, calls this once, and does not use the handle afterwards.
        unsafe { (host().result_release)(self.0, std::ptr::with_exposed_provenance_mut(result)) };
    }
}
