//! The extensions that use a connection.

use std::sync::Arc;

use goondan::extension::ExtensionApi;
use goondan_lock::Lock;

/// The extensions, each with a number.
pub(crate) type Users = Arc<Lock<Vec<(u64, ExtensionApi)>>>;
