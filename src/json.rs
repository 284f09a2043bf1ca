//! JSON values, for extensions that have no dependency `serde_json` of their own.
//!
//! Everything here but [`count_values`] is `serde_json`'s, of the version that goondan uses. The macro is also `goondan::json!`, and
//! [`Value`] and [`Map`] are in the root of the crate as well.
//!
//! ```
//! use goondan::json::{self, Value};
//! use goondan::prelude::*;
//!
//! #[derive(Debug, PartialEq, Deserialize, Serialize)]
//! struct Place {
//!     city: String,
//! }
//!
//! let value = json::to_value(Place { city: "Seoul".to_owned() })?;
//! assert_eq!(value, json::json!({ "city": "Seoul" }));
//! assert_eq!(json::from_value::<Place>(value)?, json::from_str(r#"{ "city": "Seoul" }"#)?);
//! assert_eq!(json::to_string(&Value::Null)?, "null");
//! # Ok::<(), Error>(())
//! ```
//!
//! A derive generates code that names its crate, so an extension that derives `Deserialize`, `Serialize` or
//! `JsonSchema` depends on `serde` and `schemars`, as the crate does that `goondan new extension` makes. A crate that
//! cannot, because it uses another version of them, names those of goondan with two attributes:
//!
//! ```
//! use goondan::prelude::*;
//!
//! #[derive(Debug, Deserialize, JsonSchema)]
//! #[serde(crate = "goondan::serde")]
//! #[schemars(crate = "goondan::schemars")]
//! struct Input {
//!     text: String,
//! }
//! ```

pub use goondan_core::size::count_values;
pub use serde_json::{
    Error, Map, Number, Result, Value, from_slice, from_str, from_value, json, to_string, to_string_pretty, to_value,
    to_vec,
};
