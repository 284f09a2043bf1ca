//! A cache.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Place {
    /// The name of the city.
    city: String,
}

/// Knows the weather, and asks for each city once in ten minutes.
pub struct Weather {
    reports: Mutex<BTreeMap<String, (Instant, String)>>,
}

const FRESH: Duration = Duration::from_secs(600);

#[goondan::extension(name = "weather")]
impl Weather {
    #[init]
    fn new() -> Self {
        Self { reports: Mutex::default() }
    }

    /// Reports the weather of today.
    #[tool(effect = read)]
    async fn today(&self, place: Place) -> Result<String> {
        if let Some(report) = self.cached(&place.city) {
            return Ok(report);
        }
        let report = fetch(&place.city).await?;
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.insert(place.city, (Instant::now(), report.clone()));
        Ok(report)
    }

    // Not inside of `today`: the guard of the lock must not live across an `.await`.
    fn cached(&self, city: &str) -> Option<String> {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.get(city).filter(|(since, _)| since.elapsed() < FRESH).map(|(_, report)| report.clone())
    }
}

async fn fetch(city: &str) -> Result<String> {
    static FETCHED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let number = FETCHED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Ok(format!("report {number}: it rains in {city}"))
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::testing::Chat;

    use super::Weather;

    #[tokio::test]
    async fn the_second_call_is_answered_from_the_cache() -> goondan::Result<()> {
        let mut chat = Chat::with::<Weather>(json!({})).start().await?;
        for (city, report) in [("Seoul", 1), ("Seoul", 1), ("Bonn", 2), ("Seoul", 1)] {
            let result = chat.call("weather__today", json!({ "city": city })).await?;
            assert_eq!(result.output().unwrap(), &json!(format!("report {report}: it rains in {city}")));
        }
        Ok(())
    }
}
