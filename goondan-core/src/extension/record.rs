//! The format of a record in the link section `.goondan`: four bytes of length, little-endian, then JSON. The linker
//! concatenates the records of a library, so they can be read from the file without running any of its code.
//!
//! The JSON is passed in parts, because some are under `#[cfg]`. Each member of a list is a part that starts with a
//! comma; the comma of the first one is skipped.

/// Returns how many bytes the record of `parts` has.
pub const fn record_len(parts: &[&str]) -> usize {
    let (mut length, mut last, mut index) = (4, 0, 0);
    while index < parts.len() {
        let part = parts[index].as_bytes();
        length += part.len() - start(last, part);
        last = end(last, part);
        index += 1;
    }
    length
}

/// Returns the record of `parts`; `N` is its [`record_len`].
#[expect(clippy::cast_possible_truncation, reason = "a record is written by hand and far below 4 GiB")]
pub const fn length_prefixed<const N: usize>(parts: &[&str]) -> [u8; N] {
    let length = ((N - 4) as u32).to_le_bytes();
    let mut record = [0; N];
    let mut at = 0;
    while at < 4 {
        record[at] = length[at];
        at += 1;
    }
    let (mut last, mut index) = (0, 0);
    while index < parts.len() {
        let part = parts[index].as_bytes();
        let mut from = start(last, part);
        while from < part.len() {
            record[at] = part[from];
            at += 1;
            from += 1;
        }
        last = end(last, part);
        index += 1;
    }
    record
}

/// Returns the offset at which `part` begins, after text that ends with `last`.
const fn start(last: u8, part: &[u8]) -> usize {
    if last == b'[' && !part.is_empty() && part[0] == b',' { 1 } else { 0 }
}

/// Returns the last byte of the text once `part` was appended.
const fn end(last: u8, part: &[u8]) -> u8 {
    if part.is_empty() { last } else { part[part.len() - 1] }
}
