//! The memory: files with text, which the conversations of a workspace share.

use std::collections::BTreeMap;

use goondan::prelude::*;

/// The files by their paths. They are no files of the machine, so no path leads out of them.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Memory {
    files: BTreeMap<String, String>,
}

/// The arguments of the memory, as Anthropic defines them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "command", rename_all = "snake_case")]
pub(crate) enum Command {
    /// Shows a file with the numbers of its lines, or lists a directory.
    View {
        path: String,
        /// The first and the last line to show; -1 is the last one of the file.
        #[serde(default)]
        view_range: Option<(i64, i64)>,
    },
    /// Creates or replaces a file.
    Create { path: String, file_text: String },
    /// Replaces a text that occurs once.
    StrReplace { path: String, old_str: String, new_str: String },
    /// Inserts a text after a line; 0 is before the first one.
    Insert { path: String, insert_line: usize, insert_text: String },
    /// Deletes a file, or a directory with all that is in it.
    Delete { path: String },
    /// Moves a file or a directory.
    Rename { old_path: String, new_path: String },
}

const ROOT: &str = "/memories";

/// The most bytes of all files together.
const MOST: usize = 256 << 10;

impl Memory {
    /// Runs a command. Returns what the model reads, or what is wrong with the command; then nothing has changed.
    pub(crate) fn run(&mut self, command: Command) -> Result<String, String> {
        match command {
            Command::View { path, view_range } => self.view(legal(&path)?, view_range),
            Command::Create { path, file_text } => {
                let path = file(&path)?;
                self.write(path, file_text)?;
                Ok(format!("File created successfully at: {path}"))
            }
            Command::StrReplace { path, old_str, new_str } => {
                let path = file(&path)?;
                let text = self.read(path)?;
                match text.matches(&*old_str).count() {
                    1 if !old_str.is_empty() => {}
                    count => return Err(format!("`old_str` must occur once in {path}, and occurs {count} times")),
                }
                let text = text.replacen(&*old_str, &new_str, 1);
                self.write(path, text)?;
                Ok("The memory file has been edited.".to_owned())
            }
            Command::Insert { path, insert_line, insert_text } => {
                let path = file(&path)?;
                let mut lines: Vec<_> = self.read(path)?.lines().map(str::to_owned).collect();
                if insert_line > lines.len() {
                    return Err(format!("{path} has {} lines, so `insert_line` is too large", lines.len()));
                }
                lines.splice(insert_line..insert_line, insert_text.lines().map(str::to_owned));
                self.write(path, lines.join("\n") + "\n")?;
                Ok(format!("The file {path} has been edited."))
            }
            Command::Delete { path } => {
                let path = legal(&path)?;
                let before = self.files.len();
                self.files.retain(|known, _| !is_in(known, path));
                if self.files.len() == before { Err(missing(path)) } else { Ok(format!("Successfully deleted {path}")) }
            }
            Command::Rename { old_path, new_path } => self.rename(file(&old_path)?, file(&new_path)?),
        }
    }

    fn view(&self, path: &str, range: Option<(i64, i64)>) -> Result<String, String> {
        let Some(text) = self.files.get(path) else {
            let files: Vec<_> = self.files.keys().filter(|known| is_in(known, path)).map(String::as_str).collect();
            return match files.is_empty() && path != ROOT {
                true => Err(missing(path)),
                false => Ok(format!("Files in {path}:\n{}", files.join("\n"))),
            };
        };
        let (first, last) = range.unwrap_or((1, -1));
        let is_shown = |number: i64| number >= first && (last == -1 || number <= last);
        let lines = (1..).zip(text.lines()).filter(|(number, _)| is_shown(*number));
        Ok(lines.map(|(number, line)| format!("{number:6}\t{line}\n")).collect())
    }

    fn rename(&mut self, old: &str, new: &str) -> Result<String, String> {
        if self.files.keys().any(|known| is_in(known, new)) {
            return Err(format!("{new} exists already"));
        }
        if is_in(new, old) {
            return Err(format!("{old} cannot be moved into itself"));
        }
        let moved: Vec<_> = self.files.keys().filter(|known| is_in(known, old)).cloned().collect();
        if moved.is_empty() {
            return Err(missing(old));
        }
        for path in moved {
            if let Some(text) = self.files.remove(&path) {
                self.files.insert(format!("{new}{}", &path[old.len()..]), text);
            }
        }
        Ok(format!("Successfully renamed {old} to {new}"))
    }

    fn read(&self, path: &str) -> Result<&str, String> {
        self.files.get(path).map(String::as_str).ok_or_else(|| missing(path))
    }

    fn write(&mut self, path: &str, text: String) -> Result<(), String> {
        let others =
            self.files.iter().filter(|(known, _)| *known != path).map(|(known, text)| known.len() + text.len());
        if others.sum::<usize>() + path.len() + text.len() > MOST {
            return Err(format!("the memory has room for {} KB; delete what is not needed any more", MOST >> 10));
        }
        self.files.insert(path.to_owned(), text);
        Ok(())
    }
}

/// Returns a path without a slash at its end, if it is below the root.
fn legal(path: &str) -> Result<&str, String> {
    let path = path.trim_end_matches('/');
    let is_legal = is_in(path, ROOT) && path.split('/').skip(1).all(|name| !["", ".", ".."].contains(&name));
    is_legal.then_some(path).ok_or_else(|| format!("`{path}` is no path below {ROOT}"))
}

/// Returns a path that is not the root.
fn file(path: &str) -> Result<&str, String> {
    let path = legal(path)?;
    if path == ROOT { Err(format!("{ROOT} is a directory")) } else { Ok(path) }
}

/// Whether a path is another one, or below it.
fn is_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn missing(path: &str) -> String {
    format!("The path {path} does not exist")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use goondan::{Value, json};

    use super::*;

    fn run(memory: &mut Memory, command: Value) -> Result<String, String> {
        memory.run(Command::deserialize(command).unwrap())
    }

    #[test]
    fn files_are_created_changed_moved_and_deleted() {
        let mut memory = Memory::default();
        let empty = run(&mut memory, json!({ "command": "view", "path": "/memories" }));
        assert_eq!(empty.unwrap(), "Files in /memories:\n");
        for command in [
            json!({ "command": "create", "path": "/memories/a/b.txt", "file_text": "one\ntwo\n" }),
            json!({ "command": "str_replace", "path": "/memories/a/b.txt", "old_str": "two", "new_str": "2" }),
            json!({ "command": "insert", "path": "/memories/a/b.txt", "insert_line": 1, "insert_text": "1.5" }),
            json!({ "command": "rename", "old_path": "/memories/a", "new_path": "/memories/c" }),
        ] {
            run(&mut memory, command).unwrap();
        }
        let shown = json!({ "command": "view", "path": "/memories/c/b.txt", "view_range": [2, -1] });
        assert_eq!(run(&mut memory, shown).unwrap(), "     2\t1.5\n     3\t2\n");
        run(&mut memory, json!({ "command": "delete", "path": "/memories/c" })).unwrap();
        assert!(memory.files.is_empty());
    }

    #[test]
    fn what_cannot_be_done_changes_nothing() {
        let mut memory = Memory::default();
        run(&mut memory, json!({ "command": "create", "path": "/memories/a", "file_text": "x x" })).unwrap();
        for (command, problem) in [
            (json!({ "command": "view", "path": "/memories/../etc/passwd" }), "no path below"),
            (json!({ "command": "view", "path": "/memoriesx" }), "no path below"),
            (json!({ "command": "view", "path": "/memories/b" }), "does not exist"),
            (json!({ "command": "create", "path": "/memories/", "file_text": "" }), "is a directory"),
            (json!({ "command": "create", "path": "/memories/b", "file_text": "x".repeat(MOST) }), "room for 256 KB"),
            (
                json!({ "command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "y" }),
                "occurs 2 times",
            ),
            (json!({ "command": "insert", "path": "/memories/a", "insert_line": 2, "insert_text": "y" }), "too large"),
            (json!({ "command": "rename", "old_path": "/memories/b", "new_path": "/memories/c" }), "does not exist"),
            (json!({ "command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/b" }), "into itself"),
            (json!({ "command": "rename", "old_path": "/memories/a", "new_path": "/memories/a" }), "exists already"),
        ] {
            let refused = run(&mut memory, command.clone()).unwrap_err();
            assert!(refused.contains(problem), "{command}: {refused}");
        }
        assert_eq!(memory.files.into_iter().collect::<Vec<_>>(), [("/memories/a".to_owned(), "x x".to_owned())]);
    }
}
