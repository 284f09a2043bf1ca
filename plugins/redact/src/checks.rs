//! Checks that regular expressions cannot make: check digits, and the text beside a number.

/// Returns the end of a match in a text, from `start` to `end` at most, or `None` if it is none.
pub(crate) type Check = fn(text: &str, start: usize, end: usize) -> Option<usize>;

fn before(text: &str, start: usize) -> Option<char> {
    text[..start].chars().next_back()
}

fn after(text: &str, end: usize) -> Option<char> {
    text[end..].chars().next()
}

fn is_part(beside: Option<char>) -> bool {
    beside.is_some_and(char::is_alphanumeric)
}

/// Whatever is found.
pub(crate) fn any(_: &str, _: usize, end: usize) -> Option<usize> {
    Some(end)
}

/// A number with 8 to 15 digits, which is no part of a longer one.
pub(crate) fn phone(text: &str, start: usize, end: usize) -> Option<usize> {
    let digits = text[start..end].bytes().filter(u8::is_ascii_digit).count();
    let is_whole = !is_part(before(text, start)) && !is_part(after(text, end));
    (is_whole && (8..=15).contains(&digits)).then_some(end)
}

/// The longest number of 13 to 19 digits whose last one is the check digit of the others.
pub(crate) fn card(text: &str, start: usize, end: usize) -> Option<usize> {
    longest(text, start, end, |digits| (13..=19).contains(&digits.len()) && has_luhn_digit(digits))
}

/// The longest text that is an IBAN.
pub(crate) fn iban(text: &str, start: usize, end: usize) -> Option<usize> {
    longest(text, start, end, |chars| (15..=34).contains(&chars.len()) && has_iban_digits(chars))
}

/// A key, after a character that keys do not have.
pub(crate) fn key(text: &str, start: usize, end: usize) -> Option<usize> {
    let beside = before(text, start).is_some_and(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    (!beside && goondan_keys::is_key(&text[start..end])).then_some(end)
}

/// Returns the end of the longest part from `start` on whose letters and digits fit, and which is no part of a word.
fn longest(text: &str, start: usize, end: usize, fits: impl Fn(&[u8]) -> bool) -> Option<usize> {
    if is_part(before(text, start)) {
        return None;
    }
    let ends = (start + 1..=end).rev().filter(|end| text.as_bytes()[end - 1].is_ascii_alphanumeric());
    ends.filter(|end| !is_part(after(text, *end))).find(|end| {
        let chars: Vec<u8> = text[start..*end].bytes().filter(u8::is_ascii_alphanumeric).collect();
        fits(&chars)
    })
}

fn has_luhn_digit(digits: &[u8]) -> bool {
    let sum: u32 = (0..).zip(digits.iter().rev()).map(|(at, digit)| luhn(at, u32::from(digit - b'0'))).sum();
    sum.is_multiple_of(10)
}

fn luhn(at: u32, digit: u32) -> u32 {
    match at % 2 {
        0 => digit,
        _ if digit > 4 => digit * 2 - 9,
        _ => digit * 2,
    }
}

fn has_iban_digits(chars: &[u8]) -> bool {
    let (first, rest) = chars.split_at(4);
    let remainder = rest.iter().chain(first).fold(0_u32, |remainder, char| match char {
        b'0'..=b'9' => (remainder * 10 + u32::from(char - b'0')) % 97,
        _ => (remainder * 100 + u32::from(char.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    remainder == 1
}
