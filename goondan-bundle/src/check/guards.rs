//! Checks that failures of extensions that guard are not skipped (FAIL-01).

use goondan_core::OnError;
use goondan_core::host::skipped_guard;

use super::extensions::Extensions;
use crate::resource::ExtensionUse;

/// Reports each `onError: skip` of an extension that guards. `uses` are extensions of an agent.
pub(super) fn check(uses: &[ExtensionUse<'_>], extensions: &Extensions<'_>) {
    for ExtensionUse { used, on_error, .. } in uses {
        if let Some(on_error) = on_error
            && used.on_error == OnError::Skip
            && extensions.guards(&used.target)
        {
            let error = skipped_guard();
            let message = format!("`{}`: {}", used.target.name, error.message());
            on_error.error(error.code().clone(), message, error.suggestion().unwrap_or_default().to_owned());
        }
    }
}
