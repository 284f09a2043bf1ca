//! Unified diffs as people read them: indented, coloured, and not too long.

use super::{Style, Styled, first_line};

/// The number of lines of a diff that are shown, unless a person wants all.
pub(super) const MAX_LINES: usize = 40;
/// The number of characters of a line that are shown.
const MAX_LINE: usize = 200;

/// Appends `diff` to `page`, up to `most` lines. Of the lines before the first change of a file, only its name is shown.
pub(super) fn page(diff: &str, most: usize, mut page: Styled) -> Styled {
    let (mut shown, mut left_out, mut in_changes) = (0, 0, false);
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        // A line that was removed can look like the first of these, but hardly like both.
        let name = line.strip_prefix("--- ").zip(lines.peek().and_then(|next| next.strip_prefix("+++ ")));
        let (style, text) = if let Some((old, new)) = name {
            lines.next();
            in_changes = false;
            let name = new.strip_prefix("b/").or(old.strip_prefix("a/")).unwrap_or(new);
            (Some(Style::Cyan), name)
        } else if line.starts_with("@@ ") {
            in_changes = true;
            (Some(Style::Dim), line)
        } else if line.starts_with("diff --git ") {
            in_changes = false;
            continue;
        } else {
            match line.as_bytes().first() {
                _ if line.starts_with("Binary files ") => (Some(Style::Cyan), line),
                _ if !in_changes => continue,
                Some(b'+') => (Some(Style::Green), line),
                Some(b'-') => (Some(Style::Red), line),
                _ => (None, line),
            }
        };
        if shown == most {
            left_out += 1;
            continue;
        }
        shown += 1;
        let text = first_line(text, MAX_LINE);
        page = page.text("  ");
        page = match style {
            Some(style) => page.paint(style, &text),
            None => page.text(&text),
        };
        page = page.text("\n");
    }
    if left_out > 0 {
        page = page.text("  ").paint(Style::Dim, &format!("… {left_out} more lines")).text("\n");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(diff: &str) -> String {
        page(diff, MAX_LINES, Styled::new(false)).as_str().to_owned()
    }

    #[test]
    fn names_and_changes_are_shown() {
        let diff = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\x1b[2J\n\
                    diff --git a/y b/y\ndeleted file mode 100644\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n--- y\n\
                    diff --git a/z b/z\nBinary files a/z and b/z differ\n";
        let expected = "  x\n  @@ -1,2 +1,2 @@\n   a\n  -b\n  +c␛[2J\n  y\n  @@ -1 +0,0 @@\n  --- y\n  \
                        Binary files a/z and b/z differ\n";
        assert_eq!(shown(diff), expected);
        let colored = page("@@ -1 +1 @@\n-a\n+b\n", MAX_LINES, Styled::new(true));
        assert!(colored.as_str().contains("\x1b[31m-a\x1b[0m") && colored.as_str().contains("\x1b[32m+b\x1b[0m"));
    }

    #[test]
    fn long_diffs_are_cut() {
        let diff = format!("--- a/x\n+++ b/x\n@@ -1 +1,100 @@\n{}", "+x\n".repeat(100));
        let shown = shown(&diff);
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(shown.ends_with("  … 62 more lines\n"), "{shown}");
        assert_eq!(page(&diff, usize::MAX, Styled::new(false)).as_str().lines().count(), 102);
        assert_eq!(self::shown(&format!("@@ @@\n+{}", "x".repeat(500))).lines().last().unwrap().len(), 2 + MAX_LINE);
    }
}
