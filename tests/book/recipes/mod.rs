//! The extensions of `docs/recipes`, each with a conversation that it runs in.

mod another_model;
mod ask;
mod cache;
mod conversation_limit;
mod form;
mod known_answer;
mod later;
mod old_results;
mod output_guard;
mod redaction;
mod reload;
mod restart;
mod retry;
mod search;
mod summary;
mod teams;
mod timer;
mod token_budget;
mod user_limit;
mod virtual_time;
mod wake;
