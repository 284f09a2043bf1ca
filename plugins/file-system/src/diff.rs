//! The difference that a change of a file makes, for people who watch.

use std::io::Read as _;
use std::time::Duration;

use cap_std::fs::OpenOptions;
use similar::TextDiff;

use crate::place::Place;

/// The largest text that is compared, in bytes.
const LARGEST: u64 = 1_000_000;
/// The longest time of a comparison. After that, the difference is a coarse one.
const LIMIT: Duration = Duration::from_millis(200);

/// Returns the text of the file at a place, which is empty if there is none. A file that is too large, or no text, has
/// no difference that could be shown.
pub(crate) fn before(place: &Place) -> Option<String> {
    let mut text = String::new();
    if let Ok(file) = place.open(OpenOptions::new().read(true)) {
        file.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    }
    (text.len() as u64 <= LARGEST).then_some(text)
}

/// Returns the difference between two texts of the file at a place, as a unified diff; `None` if there is none.
pub(crate) fn unified(place: &Place, before: &str, after: &str) -> Option<String> {
    if before == after || before.len().max(after.len()) as u64 > LARGEST {
        return None;
    }
    let path = place.path.display();
    let from = if before.is_empty() { "/dev/null".to_owned() } else { format!("a/{path}") };
    let diff = TextDiff::configure().timeout(LIMIT).diff_lines(before, after);
    Some(diff.unified_diff().header(&from, &format!("b/{path}")).to_string())
}
