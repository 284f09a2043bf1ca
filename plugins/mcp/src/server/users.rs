//! The extensions that use a connection.

use std::sync::{Arc, Mutex};

use goondan::extension::ExtensionApi;

/// The extensions, each with a number.
pub(crate) type Users = Arc<Mutex<Vec<(u64, ExtensionApi)>>>;
