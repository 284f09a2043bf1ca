//! Dates in HTTP headers.

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads a date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that servers may send.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let (_, date) = text.split_once(", ")?;
    let [day, month, year, time, "GMT"] = date.split(' ').collect::<Vec<_>>()[..] else { return None };
    let [hours, minutes, seconds] = time.split(':').collect::<Vec<_>>()[..] else { return None };
    let number = |text: &str| text.parse::<u64>().ok();
    let (day, year) = (number(day).filter(|day| (1..=31).contains(day))?, number(year)?);
    let month = 1 + MONTHS.iter().position(|name| *name == month)? as u64;
    let year = (1970..=9999).contains(&year).then_some(year)?;
    // Years that begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = number(hours)? * 3600 + number(minutes)? * 60 + number(seconds)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs((days.checked_sub(719_468)?) * 86_400 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        let seconds = |text| parse(text).map(|date| date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(seconds("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        for wrong in ["", "soon", "Sun, 06 Nov 1994", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 8 GMT"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
