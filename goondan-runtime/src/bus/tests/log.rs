//! Captures the log of one test.

use std::fmt;

use crate::testing;

/// The lines that this thread has logged since [`capture`]; dropping it ends the capture.
pub(super) struct CapturedLog(testing::LogCapture);

/// Captures what this thread logs from now on.
pub(super) fn capture() -> CapturedLog {
    CapturedLog(testing::LogCapture::start())
}

impl CapturedLog {
    /// Returns the lines that contain `part`. A line is the level, the fields as `name=value`, and the text.
    pub(super) fn lines(&self, part: &str) -> Vec<String> {
        self.all().filter(|line| line.contains(part)).collect()
    }

    fn all(&self) -> impl Iterator<Item = String> {
        self.0.lines().into_iter().map(|line| {
            let fields = line.fields.iter().map(|(name, value)| match value.as_str() {
                Some(text) => format!("{name}={text} "),
                None => format!("{name}={value} "),
            });
            let level = format!("{:?} ", line.level).to_uppercase();
            let extension = line.extension.map(|extension| format!("extension={extension} "));
            std::iter::once(level).chain(extension).chain(fields).chain([line.text.clone()]).collect()
        })
    }
}

impl fmt::Debug for CapturedLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}
