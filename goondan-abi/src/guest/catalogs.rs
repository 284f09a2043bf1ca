//! Catalogs of the host that this library has read. A catalog may be large, and most steps offer the same tools.

use goondan_core::ToolCatalog;
use goondan_lock::Lock;

/// The most catalogs that stay. Agents with other extensions have other catalogs.
const KEPT: usize = 8;

/// The catalogs that were read last, each with its revision; the newest is the last.
static CATALOGS: Lock<Vec<(u64, ToolCatalog)>> = Lock::new(Vec::new());

/// Returns the catalog with this revision, which `read` reads from the host if it is not here.
pub(super) fn find(revision: u64, read: impl FnOnce() -> ToolCatalog) -> ToolCatalog {
    let lock = || CATALOGS.lock();
    let mut catalogs = lock();
    if let Some(index) = catalogs.iter().position(|(known, _)| *known == revision) {
        catalogs[index..].rotate_left(1);
        return catalogs.last().map(|(_, catalog)| catalog.clone()).unwrap_or_default();
    }
    drop(catalogs);
    let catalog = read();
    let mut catalogs = lock();
    if catalogs.len() >= KEPT {
        catalogs.remove(0);
    }
    catalogs.push((revision, catalog.clone()));
    catalog
}
