#![doc = include_str!("../docs/errors.md")]

use crate::ErrorCode;

const PAGE: &str = include_str!("../docs/errors.md");

/// Returns the section of this page about `code`, as Markdown without its heading; `None` for codes that an extension
/// defines.
///
/// ```
/// use goondan::{ErrorCode, errors};
///
/// let section = errors::explain(&ErrorCode::EXT_INIT).unwrap_or_default();
/// assert!(section.starts_with("The initializer of an extension failed."));
/// ```
pub fn explain(code: &ErrorCode) -> Option<&'static str> {
    let mut sections = PAGE.split("\n## ").skip(1).filter_map(|section| section.split_once('\n'));
    sections.find(|(heading, _)| code == *heading).map(|(_, section)| section.trim_end())
}
