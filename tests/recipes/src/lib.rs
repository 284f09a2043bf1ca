//! Extensions of `docs/recipes`, and the tools that they are tried with, so that tests have them in both linkages.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "a page shows what a reader writes")]

#[path = "../../book/recipes/cache.rs"]
mod cache;
#[path = "../../book/recipes/conversation_limit.rs"]
mod conversation_limit;
#[path = "../../book/recipes/form.rs"]
mod form;
#[path = "../../book/recipes/output_guard.rs"]
mod output_guard;
#[path = "../../book/recipes/redaction.rs"]
mod redaction;
#[path = "../../book/recipes/search.rs"]
mod search;
#[path = "../../book/recipes/summary.rs"]
mod summary;
#[path = "../../book/recipes/token_budget.rs"]
mod token_budget;
#[path = "../../book/recipes/user_limit.rs"]
mod user_limit;
#[path = "../../book/recipes/wake.rs"]
mod wake;

/// What is asked for again and again.
#[goondan::extension(name = "weather")]
mod weather {
    use goondan::prelude::*;

    /// Reports the weather of today.
    #[tool(effect = read)]
    async fn today() -> Result<&'static str> {
        Ok("it rains")
    }
}
