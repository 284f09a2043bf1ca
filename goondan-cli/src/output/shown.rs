//! The updates of extensions for the person, as lines that stay. The name of the extension comes first: the rest may be
//! a text of others.

use std::convert::Infallible;
use std::time::Duration;

use goondan::agent::EventStream;
use goondan::event::{ExtensionShown, ItemState, Shown, ShownItem};
use goondan::name::{ExtensionName, TurnId};
use tokio::time::timeout;

use super::{Style, Styled, diff, eprint_styled};

/// The updates that are printed line by line. Of a list that changes, the items that changed are printed.
#[derive(Default)]
pub(crate) struct ShownLines {
    lists: Vec<(ExtensionName, Shown)>,
}

impl ShownLines {
    /// Appends the printed form.
    pub(crate) fn page(&mut self, ExtensionShown { extension, shown, .. }: &ExtensionShown, page: Styled) -> Styled {
        let name = |page: Styled| page.paint(Style::Cyan, extension.as_str()).text(": ");
        match shown {
            Shown::Note { text } => name(page).text(&indented(text)).text("\n"),
            Shown::Difference { diff } => {
                diff::page(diff, diff::MAX_LINES, page.paint(Style::Cyan, extension.as_str()).text("\n"))
            }
            Shown::List { title, items, .. } => {
                let is_old = |(other, old): &(ExtensionName, Shown)| other == extension && shown.replaces(old);
                let old = self.lists.iter().position(is_old).map(|at| self.lists.swap_remove(at).1);
                if items.is_empty() {
                    return page;
                }
                self.lists.push((extension.clone(), shown.clone()));
                match old {
                    Some(Shown::List { title: old_title, items: old, .. }) if old_title == *title => {
                        let changed = items.iter().filter(|item| !old.contains(item));
                        changed.fold(page, |page, changed| item(changed, name(page)).text("\n"))
                    }
                    _ => list(extension, title, items, page),
                }
            }
            _ => page,
        }
    }

    /// Prints notes to standard error, for ever.
    pub(crate) async fn print(&mut self, events: &mut EventStream) -> Infallible {
        while let Some(event) = events.next().await {
            if let Ok(shown) = event.payload() {
                eprint_styled(&self.page(&shown, Styled::new(false)));
            }
        }
        std::future::pending().await
    }

    /// Prints the notes so far to standard error, except those of this turn.
    pub(crate) async fn print_rest(&mut self, events: &mut EventStream, except: Option<&TurnId>, text: &Styled) {
        while let Ok(Some(event)) = timeout(Duration::ZERO, events.next()).await {
            if let Ok(shown) = event.payload::<ExtensionShown>()
                && (shown.turn_id.is_none() || shown.turn_id.as_ref() != except)
            {
                eprint_styled(&self.page(&shown, text.clone()));
            }
        }
    }
}

/// Appends a list with its items.
pub(crate) fn list(extension: &ExtensionName, title: &str, items: &[ShownItem], page: Styled) -> Styled {
    let page = heading(extension, title, items, page).text("\n");
    items.iter().fold(page, |page, shown| item(shown, page.text("  ")).text("\n"))
}

/// Appends the title of a list, and how much of it is done.
pub(crate) fn heading(extension: &ExtensionName, title: &str, items: &[ShownItem], page: Styled) -> Styled {
    let done = items.iter().filter(|item| item.state == ItemState::Done).count();
    let count = if items.is_empty() { String::new() } else { format!(" · {done} of {}", items.len()) };
    page.paint(Style::Cyan, extension.as_str()).text(": ").text(title).paint(Style::Dim, &count)
}

/// Appends an item with its mark.
pub(crate) fn item(ShownItem { state, text, .. }: &ShownItem, page: Styled) -> Styled {
    let mark = state.mark();
    match state {
        ItemState::Done => page.paint(Style::Green, mark).text(" ").paint(Style::Dim, text),
        ItemState::Active => page.paint(Style::Yellow, mark).text(" ").paint(Style::Bold, text),
        ItemState::Failed => page.paint(Style::Red, mark).text(" ").text(text),
        _ => page.text(mark).text(" ").text(text),
    }
}

/// Returns the text, whose later lines are indented.
pub(super) fn indented(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &mut ShownLines, shown: Shown) -> String {
        let shown = ExtensionShown::new(ExtensionName::new("plan").unwrap(), shown);
        lines.page(&shown, Styled::new(false)).as_str().to_owned()
    }

    fn items(states: &[ItemState]) -> Vec<ShownItem> {
        states.iter().enumerate().map(|(at, state)| ShownItem::new(*state, format!("part {at}"))).collect()
    }

    #[test]
    fn the_name_of_the_extension_comes_first() {
        let mut lines = ShownLines::default();
        assert_eq!(shown(&mut lines, Shown::note("a\nb\n")), "plan: a\n  b\n");
        assert_eq!(shown(&mut lines, Shown::status("a")), "");
        assert_eq!(
            shown(&mut lines, Shown::difference("--- a/x\n+++ b/x\n@@ @@\n-a\n+b\n")),
            "plan\n  x\n  @@ @@\n  -a\n  +b\n"
        );
    }

    #[test]
    fn of_a_list_what_changed_is_printed() {
        let mut lines = ShownLines::default();
        let first = Shown::list("Work", items(&[ItemState::Active, ItemState::Open]));
        assert_eq!(shown(&mut lines, first.clone()), "plan: Work · 0 of 2\n  [>] part 0\n  [ ] part 1\n");
        assert_eq!(shown(&mut lines, first), "");
        let second = Shown::list("Work", items(&[ItemState::Done, ItemState::Active]));
        assert_eq!(shown(&mut lines, second), "plan: [x] part 0\nplan: [>] part 1\n");
        let other = Shown::list("Other work", items(&[ItemState::Done]));
        assert_eq!(shown(&mut lines, other), "plan: Other work · 1 of 1\n  [x] part 0\n");
    }
}
