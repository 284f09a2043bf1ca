//! The texts that are masked, and how many holders each of them has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread;

/// The texts, longest first: one secret may be a part of another.
static KNOWN: RwLock<Vec<Known>> = RwLock::new(Vec::new());

/// Whether [`KNOWN`] has any entry, readable without the lock.
static ANY: AtomicBool = AtomicBool::new(false);

struct Known {
    text: Box<str>,
    /// The number of [`Masked`] that have the text.
    holders: usize,
}

/// Texts that are masked as long as this lives.
#[derive(Default)]
pub struct Masked(Vec<Box<str>>);

impl Masked {
    pub(super) fn new(texts: Vec<Box<str>>) -> Self {
        change(&texts, |known, place, text| match place {
            Ok(place) => known[place].holders += 1,
            Err(place) => known.insert(place, Known { text: text.into(), holders: 1 }),
        });
        Self(texts)
    }

    /// Returns the masked texts that occur in any of `texts`.
    pub(crate) fn within(texts: &[String]) -> Self {
        let mut found = Vec::new();
        for_each(|known| {
            if texts.iter().any(|text| text.contains(known)) {
                found.push(known.into());
            }
        });
        Self::new(found)
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        // A panic may have the text in its message, which is masked when the panic is caught.
        if thread::panicking() {
            return;
        }
        change(&self.0, |known, place, _| {
            let Ok(place) = place else { return };
            known[place].holders -= 1;
            if known[place].holders == 0 {
                known.remove(place);
            }
        });
    }
}

/// Calls `change` for each text with its place in the list, or with the place where it belongs.
fn change(texts: &[Box<str>], mut change: impl FnMut(&mut Vec<Known>, Result<usize, usize>, &str)) {
    if texts.is_empty() {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    for text in texts {
        let place = known.binary_search_by(|other| (text.len(), &other.text).cmp(&(other.text.len(), text)));
        change(&mut known, place, text);
    }
    ANY.store(!known.is_empty(), Ordering::Release);
}

/// Returns whether any text is masked.
pub fn any() -> bool {
    ANY.load(Ordering::Acquire)
}

/// Calls `visit` with each masked text, longest first.
pub(super) fn for_each(mut visit: impl FnMut(&str)) {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known.iter().for_each(|known| visit(&known.text));
}
