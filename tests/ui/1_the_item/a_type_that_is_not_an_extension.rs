//! Only types under `#[extension]` can be added to an agent (ENTRY-10).
use goondan::Agent;

struct Plain;

fn main() {
    let _ = Agent::builder("assistant").extension::<Plain>(goondan::json!({}));
}
