//! Records of a journal, written as documented.

use std::fmt::Display;

/// Returns a record with the checksum that ends its line.
pub(crate) fn with_sum(record: &str) -> String {
    let text = record.strip_suffix('}').unwrap();
    format!("{text},\"sum\":{}}}\n", crc32fast::hash(text.as_bytes()))
}

/// Returns the first record of a journal.
pub(crate) fn checkpoint(base: &str, state: &impl Display) -> String {
    let (bytes, crc) = (base.len(), crc32fast::hash(base.as_bytes()));
    with_sum(&format!("{{\"format\":1,\"baseBytes\":{bytes},\"crc\":{crc},\"state\":{state}}}"))
}

/// Returns the first record of a turn.
pub(crate) fn begin(turn: &str) -> String {
    with_sum(&format!("{{\"turn\":\"{turn}\"}}"))
}

/// Returns the record that commits the turn with these records.
pub(crate) fn fold(turn: &str, pure: bool, records: &str, state: &impl Display) -> String {
    let crc = crc32fast::hash(records.as_bytes());
    with_sum(&format!("{{\"fold\":\"{turn}\",\"pure\":{pure},\"eventsCrc\":{crc},\"state\":{state}}}"))
}
