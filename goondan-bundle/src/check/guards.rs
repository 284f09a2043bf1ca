//! Checks that failures of extensions that guard are not skipped (FAIL-01), and that extensions which cover other
//! agents guard (GUARD-01).

use goondan_core::host::skipped_guard;
use goondan_core::{ErrorCode, OnError};
use goondan_runtime::Covers;

use super::extensions::Extensions;
use crate::resource::ExtensionUse;

/// Reports each `onError: skip` of an extension that guards, and each `covers` of one that does not. `uses` are
/// extensions of an agent.
pub(super) fn check(uses: &[ExtensionUse<'_>], extensions: &Extensions<'_>) {
    for ExtensionUse { used, on_error, covers, .. } in uses {
        if let Some(covers) = covers
            && used.covers == Covers::Reachable
            && extensions.is_known(&used.target)
            && !extensions.guards(&used.target)
        {
            let message = format!("`{}` does not guard, so it cannot cover other agents", used.target.name);
            covers.error(ErrorCode::EXT_GUARD, message, "remove the line, or mark the extension with `guard`");
        }
        if let Some(on_error) = on_error
            && used.on_error == OnError::Skip
            && extensions.guards(&used.target)
        {
            let error = skipped_guard();
            let message = format!("`{}`: {}", used.target.name, error.message());
            on_error.error_once(error.code().clone(), message, error.suggestion().unwrap_or_default().to_owned());
        }
    }
}
