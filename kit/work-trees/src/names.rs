//! Names that git keeps for itself, as any file system may understand them.
// TREE-01

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Returns whether a file of this name could be taken for `.git`: also in capital letters, as a short name or a stream
/// of NTFS, and with characters that HFS does not see. A repository in a work tree could name programs.
///
/// ```
/// use std::ffi::OsStr;
///
/// assert!(work_trees::is_git(OsStr::new(".Git")));
/// assert!(work_trees::is_git(OsStr::new("git~1")));
/// assert!(!work_trees::is_git(OsStr::new(".gitignore")));
/// ```
pub fn is_git(name: &OsStr) -> bool {
    parts(name.as_bytes()).any(|part| part == ".git" || part == "git~1")
}

/// Returns whether a path has a component for which [`is_git`] is true.
pub fn is_in_git(path: &[u8]) -> bool {
    parts(path).any(|part| part == ".git" || part == "git~1")
}

/// Returns the components of a path as the most lenient file system compares them: small letters, without what it does
/// not see.
pub fn components(path: &OsStr) -> Vec<String> {
    parts(path.as_bytes()).collect()
}

fn parts(path: &[u8]) -> impl Iterator<Item = String> {
    // NTFS separates by both.
    path.split(|byte| b"/\\".contains(byte)).map(|part| {
        let part: String = String::from_utf8_lossy(part).chars().filter(|char| !is_unseen(*char)).collect();
        // What follows a colon is the name of a stream.
        let name = part.split(':').next().unwrap_or_default();
        let trimmed = name.trim_end_matches(['.', ' ']);
        // `.` and `..` stay what they are.
        let name = if trimmed.is_empty() { name } else { trimmed };
        name.to_lowercase()
    })
}

/// Whether HFS does not see a character in a name.
fn is_unseen(char: char) -> bool {
    matches!(char, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_the_name_is_recognized() {
        let forms =
            [".git", ".GIT", ".giT", "GIT~1", ".git ", ".git. .", ".git::$INDEX_ALLOCATION", ".g\u{200c}it", "x\\.git"];
        for form in forms {
            assert!(is_git(OsStr::new(form)), "{form:?}");
            assert!(is_in_git(format!("a/{form}/config").as_bytes()), "{form:?}");
        }
        for other in ["git", ".gitignore", ".github", "git~2", "a.git", "..git", ". git", "..", ""] {
            assert!(!is_git(OsStr::new(other)), "{other:?}");
        }
        assert_eq!(components(OsStr::new("A/../.Bashrc. ")), ["a", "..", ".bashrc"]);
    }
}
