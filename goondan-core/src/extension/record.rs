//! Owns the form of a record in the link section `.goondan`: four bytes of length, little-endian, then JSON. The linker
//! lays the records of a library end to end, so that they can be read from the file without running anything of it.

/// How many bytes the record of `json` takes.
pub const fn record_len(json: &str) -> usize {
    json.len() + 4
}

/// The record of `json`; `N` is its [`record_len`].
#[expect(clippy::cast_possible_truncation, reason = "a record is written by hand and far below 4 GiB")]
pub const fn length_prefixed<const N: usize>(json: &str) -> [u8; N] {
    let length = (json.len() as u32).to_le_bytes();
    let mut record = [0; N];
    let mut at = 0;
    while at < N {
        record[at] = if at < 4 { length[at] } else { json.as_bytes()[at - 4] };
        at += 1;
    }
    record
}
