//! The updates of extensions during a turn: lists and statuses in their place below the answer, everything else above
//! it.

use goondan::event::{ExtensionShown, ItemState, Shown, ShownItem};
use goondan::name::ExtensionName;

use crate::output::shown::{ShownLines, heading, item, list};
use crate::output::{Style, Styled};

/// The most rows of a list in its place.
const MAX_ROWS: usize = 10;

/// The updates of extensions in one turn.
#[derive(Default)]
pub(super) struct ShownInTurn {
    /// The lists and statuses as they are now, in the order in which they came.
    in_place: Vec<(ExtensionName, Shown)>,
}

impl ShownInTurn {
    /// Takes a note. Returns the lines of it that stay, if it has no place of its own.
    pub(super) fn take(&mut self, shown: ExtensionShown, page: Styled) -> Option<Styled> {
        if shown.shown.id().is_none() {
            return Some(ShownLines::default().page(&shown, page));
        }
        let ExtensionShown { extension, shown, .. } = shown;
        let is_empty = match &shown {
            Shown::List { items, .. } => items.is_empty(),
            Shown::Status { text, .. } => text.is_empty(),
            _ => false,
        };
        let old = self.in_place.iter().position(|(other, old)| *other == extension && shown.replaces(old));
        match old {
            Some(old) if is_empty => _ = self.in_place.remove(old),
            Some(old) => self.in_place[old].1 = shown,
            None if is_empty => {}
            None => self.in_place.push((extension, shown)),
        }
        None
    }

    /// Returns the rows below the answer, each one text: at most `limit`.
    pub(super) fn rows(&self, limit: usize, style: &Styled) -> Vec<Styled> {
        let mut rows = Vec::new();
        for (extension, shown) in &self.in_place {
            match shown {
                Shown::List { title, items, .. } => {
                    rows.push(heading(extension, title, items, style.clone()));
                    rows.extend(list_rows(items, style));
                }
                Shown::Status { text, .. } => {
                    let row = style.clone().paint(Style::Cyan, extension.as_str());
                    rows.push(row.text(": ").paint(Style::Dim, text));
                }
                _ => {}
            }
        }
        rows.truncate(limit);
        rows
    }

    /// Returns the lists as they are at the end of the turn, and forgets all.
    pub(super) fn end(&mut self, page: Styled) -> Styled {
        std::mem::take(&mut self.in_place).iter().fold(page, |page, (extension, shown)| match shown {
            Shown::List { title, items, .. } => list(extension, title, items, page),
            _ => page,
        })
    }
}

/// Returns the rows of the items: of a long list, those around the first that is not done.
fn list_rows(items: &[ShownItem], style: &Styled) -> Vec<Styled> {
    let row = |shown| item(shown, style.clone().text("  "));
    if items.len() <= MAX_ROWS {
        return items.iter().map(row).collect();
    }
    // Two rows say how many are left out.
    let room = MAX_ROWS - 2;
    let first = items.iter().position(|item| item.state != ItemState::Done).unwrap_or(items.len());
    let start = first.saturating_sub(1).min(items.len() - room);
    let left_out = |count: usize| (count > 0).then(|| style.clone().paint(Style::Dim, &format!("  … {count} more")));
    let shown = items[start..start + room].iter().map(row);
    left_out(start).into_iter().chain(shown).chain(left_out(items.len() - start - room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(in_turn: &mut ShownInTurn, shown: Shown) -> Option<String> {
        let shown = ExtensionShown::new(ExtensionName::new("plan").unwrap(), shown);
        in_turn.take(shown, Styled::new(false)).map(|page| page.as_str().to_owned())
    }

    fn rows(in_turn: &ShownInTurn, limit: usize) -> String {
        let rows = in_turn.rows(limit, &Styled::new(false));
        rows.iter().map(Styled::as_str).collect::<Vec<_>>().join("\n")
    }

    fn work(done: usize, count: usize) -> Shown {
        let state = |at| if at < done { ItemState::Done } else { ItemState::Open };
        Shown::list("Work", (0..count).map(|at| ShownItem::new(state(at), format!("part {at}"))))
    }

    #[test]
    fn a_list_and_a_status_stay_in_their_places_while_they_change() {
        let mut in_turn = ShownInTurn::default();
        assert_eq!(shown(&mut in_turn, work(0, 2)), None);
        assert_eq!(shown(&mut in_turn, Shown::status("reads")), None);
        assert_eq!(shown(&mut in_turn, work(1, 2)), None);
        assert_eq!(shown(&mut in_turn, Shown::note("a note")).as_deref(), Some("plan: a note\n"));
        assert_eq!(rows(&in_turn, 9), "plan: Work · 1 of 2\n  [x] part 0\n  [ ] part 1\nplan: reads");
        assert_eq!(rows(&in_turn, 2), "plan: Work · 1 of 2\n  [x] part 0");
        shown(&mut in_turn, Shown::status(""));
        assert_eq!(in_turn.end(Styled::new(false)).as_str(), "plan: Work · 1 of 2\n  [x] part 0\n  [ ] part 1\n");
        assert_eq!(rows(&in_turn, 9), "");
    }

    #[test]
    fn of_a_long_list_the_rows_around_the_first_open_item_are_shown() {
        for (done, first, last, before, after) in [(0, 0, 7, 0, 12), (9, 8, 15, 8, 4), (20, 12, 19, 12, 0)] {
            let mut in_turn = ShownInTurn::default();
            shown(&mut in_turn, work(done, 20));
            let rows = rows(&in_turn, 99);
            let items: Vec<_> = rows.lines().filter_map(|row| row.split_once("part ")).map(|(_, at)| at).collect();
            assert_eq!((items[0], items[7], items.len()), (&*first.to_string(), &*last.to_string(), 8), "{rows}");
            for (count, is_last) in [(before, false), (after, true)] {
                let row = if is_last { rows.lines().last() } else { rows.lines().nth(1) };
                assert_eq!(row.unwrap() == format!("  … {count} more"), count > 0, "{rows}");
            }
        }
    }
}
