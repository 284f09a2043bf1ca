//! Extensions that use their state while they change it, and that try to store numbers that JSON does not have.

use std::collections::BTreeMap;
use std::thread;

use goondan::Value;
use goondan::json;
use goondan::prelude::*;

/// Uses its state inside of a change of it. Each tool returns what it saw.
#[goondan::extension(name = "nesting")]
pub mod nesting {
    use super::*;

    fn nest(api: &ExtensionApi) -> Result<Vec<String>> {
        let state = api.state();
        state.set(&1)?;
        let mut seen = Vec::new();
        state.update(|value: &mut u32| {
            seen.push(format!("inside: {:?}", state.get::<u32>().unwrap()));
            let beside = thread::scope(|scope| scope.spawn(|| api.state().get::<u32>()).join().unwrap());
            seen.push(format!("beside: {:?}", beside.unwrap()));
            let set = state.set(&7).unwrap_err();
            let update = state.update(|inner: &mut u32| *inner = 8).unwrap_err();
            seen.extend([set, update].map(|error| format!("{} {}", error.code(), error.message())));
            *value += 1;
        })?;
        seen.push(format!("after: {:?}", state.get::<u32>()?));
        Ok(seen)
    }

    #[tool]
    async fn later(api: &ExtensionApi) -> Result<Vec<String>> {
        nest(api)
    }

    #[tool(blocking)]
    fn blocking(api: &ExtensionApi) -> Result<Vec<String>> {
        nest(api)
    }

    /// Panics inside of a change.
    #[tool]
    async fn panics(api: &ExtensionApi) -> Result<()> {
        api.state().set(&1)?;
        api.state().update(|_: &mut u32| panic!("in a change"))
    }
}

#[derive(Serialize)]
struct Reading {
    name: &'static str,
    celsius: Option<f32>,
}

#[derive(Serialize)]
enum Shape {
    Newtype(f64),
    Tuple(u8, f64),
    Struct { radius: f64 },
}

/// Tries to store each of the values that hold a number that JSON does not have.
pub struct NotFinite;

impl NotFinite {
    /// Sets `value`, and returns the error and the state that is left.
    fn refused(api: &ExtensionApi, value: &impl Serialize) -> Result<(String, Value)> {
        let error = api.state().set(value).unwrap_err();
        Ok((error.code().to_string(), api.state().get()?.unwrap_or_default()))
    }
}

#[goondan::extension(name = "not-finite")]
impl NotFinite {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn store(&self, api: &ExtensionApi) -> Result<()> {
        let finite = json!({ "old": 1.5 });
        api.state().set(&finite)?;
        let all = [
            Self::refused(api, &f64::NAN)?,
            Self::refused(api, &f64::INFINITY)?,
            Self::refused(api, &f64::NEG_INFINITY)?,
            Self::refused(api, &f32::NAN)?,
            Self::refused(api, &Some(f32::INFINITY))?,
            Self::refused(api, &Reading { name: "roof", celsius: Some(f32::NAN) })?,
            Self::refused(api, &BTreeMap::from([("roof", vec![1.0, f64::NAN])]))?,
            Self::refused(api, &(1, [f64::INFINITY]))?,
            Self::refused(api, &Shape::Newtype(f64::NAN))?,
            Self::refused(api, &Shape::Tuple(1, f64::NAN))?,
            Self::refused(api, &Shape::Struct { radius: f64::INFINITY })?,
        ];
        for (number, (code, left)) in all.into_iter().enumerate() {
            assert_eq!((code.as_str(), left), ("E_EXT_STATE", finite.clone()), "value {number}");
        }
        let update = api.state().update(|state: &mut BTreeMap<String, f64>| state.insert("new".into(), f64::NAN));
        assert_eq!(update.unwrap_err().code(), &goondan::ErrorCode::EXT_STATE);
        assert_eq!(api.state().get::<Value>()?, Some(finite));
        // Everything else is stored as ever, `None` as null.
        let fine = (Reading { name: "roof", celsius: None }, Shape::Tuple(1, f64::MAX), (), 'c', b"bytes", u64::MAX);
        api.state().set(&fine)
    }

    /// A model reads null, because its JSON has no such number.
    #[tool]
    async fn answer(&self) -> Result<Vec<f64>> {
        Ok(vec![1.5, f64::NAN])
    }
}
