//! Points in time, written as ISO 8601 in UTC with milliseconds.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A point in time with the precision of a millisecond, from 1970 to 9999: the range of the written form. A moment
/// outside of these years, as of a clock that is wrong, becomes the nearest one within.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(SystemTime);

/// The milliseconds from the epoch to the end of the year 9999.
const LAST_MILLIS: u64 = 253_402_300_799_999;

impl Timestamp {
    /// Returns the current time.
    #[inline]
    pub fn now() -> Self {
        SystemTime::now().into()
    }

    /// Returns the moment that is so much later.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        let last = SystemTime::UNIX_EPOCH + Duration::from_millis(LAST_MILLIS);
        self.0.checked_add(time).unwrap_or(last).into()
    }

    /// Returns how long it is after `earlier`, or no time if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.duration_since(earlier.0).unwrap_or_default()
    }

    /// Returns how long it is until then, or no time if it is past.
    pub fn until(self) -> Duration {
        self.0.duration_since(SystemTime::now()).unwrap_or_default()
    }

    /// Reads a time before 1970 or after 9999, which another program may have written.
    fn in_other_year(text: &str) -> Option<Self> {
        let (year_end, _) = text.char_indices().skip(4).find(|(_, c)| *c == '-')?;
        let (year, rest) = text.split_at(year_end);
        // The rest is checked with a leap year, which has all days.
        humantime::parse_rfc3339(&format!("2000{rest}")).ok()?;
        match year.parse().ok()? {
            ..1970 => Some(SystemTime::UNIX_EPOCH.into()),
            10_000.. => Some((SystemTime::UNIX_EPOCH + Duration::from_millis(LAST_MILLIS)).into()),
            1970..10_000 => None,
        }
    }
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // Truncated to the precision of the written form, so that a value equals its copy read back from a file.
        let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
        Self(SystemTime::UNIX_EPOCH + Duration::from_millis(millis.min(LAST_MILLIS)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(self.0).fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = humantime::TimestampError;

    /// Reads ISO 8601 in UTC. Years before 1970 and after 9999, the latter written as in `+010000`, are read as the
    /// first and last moment.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text).map(Self).or_else(|error| Self::in_other_year(text).ok_or(error))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| {
            serde::de::Error::custom(format!("`{text}` is not a time such as 2026-01-31T12:00:00.000Z: {error}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn clocks_that_are_wrong_give_the_first_or_last_moment() {
        let epoch = SystemTime::UNIX_EPOCH;
        let years = |years: u64| Duration::from_secs(years * 366 * 24 * 60 * 60);
        for (clock, written) in [
            (epoch - years(1), "1970-01-01T00:00:00.000Z"),
            (epoch - years(100_000), "1970-01-01T00:00:00.000Z"),
            (epoch + Duration::from_millis(LAST_MILLIS + 1), "9999-12-31T23:59:59.999Z"),
            (epoch + years(100_000_000), "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::from(clock).to_string(), written);
            assert_eq!(time(written), Timestamp::from(clock));
        }
    }

    #[test]
    fn years_that_other_programs_wrote_are_read() {
        let [first, last] = ["1970-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"].map(time);
        for early in
            ["1969-12-31T23:59:59.999Z", "0000-01-01T00:00:00Z", "0004-02-29T00:00:00Z", "-000001-01-01T00:00:00.000Z"]
        {
            assert_eq!(time(early), first, "{early}");
        }
        for late in ["+010000-01-01T00:00:00.000Z", "+275760-09-13T00:00:00.000Z", "10000-01-01T00:00:00Z"] {
            assert_eq!(time(late), last, "{late}");
        }
        for none in
            ["", "-", "1969", "1969-13-01T00:00:00Z", "1969-12-31", "+010000-01-01", "year-01-01T00:00:00Z", "é"]
        {
            assert!(none.parse::<Timestamp>().is_err(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn every_clock_is_written_so_that_it_can_be_read(before: bool, secs in 0..i64::MAX as u64, nanos in 0..1_000_000_000u32) {
            let distance = Duration::new(secs, nanos);
            let epoch = SystemTime::UNIX_EPOCH;
            let clock = if before { epoch.checked_sub(distance) } else { epoch.checked_add(distance) };
            let time = Timestamp::from(clock.unwrap_or(epoch));
            let text = serde_json::to_string(&time).unwrap();
            prop_assert_eq!(serde_json::from_str::<Timestamp>(&text).unwrap(), time);
        }
    }
}
