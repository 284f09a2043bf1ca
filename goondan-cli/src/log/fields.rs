//! The fields of a line.

use std::fmt::Debug;

use goondan::secret::mask_json;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};

/// Collects fields by name.
#[derive(Default)]
pub(super) struct FieldMap(pub(super) Map<String, Value>);

impl FieldMap {
    pub(super) fn mask_secrets(&mut self) {
        self.0.values_mut().for_each(mask_json);
    }

    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for FieldMap {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }
}
