//! Generates the record: the descriptor as JSON in a section of the binary, readable without running its code.

use std::fmt::Write;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::LitStr;

use super::tokens::cfgs;
use crate::attr::doc_comment;
use crate::check::{Middleware, Plan, Tool};
use crate::model::Function;

/// Repeats `goondan::extension::API_VERSION`, because a procedural macro cannot read a constant of the crate it
/// expands in. A test of the facade compares the two.
const API_VERSION: &str = "goondan.ai/v1";

/// ```text
/// #[cfg(all(unix, not(target_vendor = "apple")))]
/// const _: () = {
///     const JSON: &[&str] = &["{\"apiVersion\":…,\"package\":\"", env!("CARGO_PKG_NAME"), …, "]}"];
///
///     #[used]
///     #[unsafe(link_section = ".goondan")]
///     static RECORD: [u8; record_len(JSON)] = length_prefixed(JSON);
/// };
/// ```
/// The section has this name and meaning in ELF files, the only ones that can be inspected.
pub(super) fn record(plan: &Plan<'_>) -> TokenStream {
    let docs = doc_comment(plan.block.attrs().iter().chain(&plan.block.inner));
    let (api_version, name, description) =
        (json_string(API_VERSION), json_string(&plan.name.value()), json_string(&docs));
    let middlewares = plan.middlewares().map(|middleware| element(middleware.function, &self::middleware(middleware)));
    let tools = plan.tools().map(|tool| element(tool.function, &self::tool(tool)));
    let subscriptions = plan.subscriptions().map(|on| element(on.function, &json_string(&on.pattern.value())));
    let requires = json_strings(&plan.requires);

    let package = format!("{{\"apiVersion\":{api_version},\"package\":\"");
    let rest = format!("\",\"name\":{name},\"description\":{description},\"middlewares\":[");
    // Left out by default, so that records of other extensions are what they were.
    let guard = if plan.guard { ",\"guard\":true" } else { "" };
    let end = format!("],\"requires\":[{requires}]{guard}}}");
    quote_spanned! {Span::mixed_site()=>
        #[cfg(all(unix, not(target_vendor = "apple")))]
        const _: () = {
            const JSON: &[&__goondan::str] = &[
                #package, __goondan::env!("CARGO_PKG_NAME"),
                "\",\"version\":\"", __goondan::env!("CARGO_PKG_VERSION"),
                #rest,
                #(#middlewares,)*
                "],\"tools\":[",
                #(#tools,)*
                "],\"subscriptions\":[",
                #(#subscriptions,)*
                #end,
            ];

            #[used]
            #[unsafe(link_section = ".goondan")]
            static RECORD: [__goondan::u8; __goondan::record_len(JSON)] = __goondan::length_prefixed(JSON);
        };
    }
}

/// An element of a list, under the `#[cfg]` attributes of `function`.
fn element(function: &Function, json: &str) -> TokenStream {
    let (cfgs, element) = (cfgs(function), format!(",{json}"));
    quote_spanned!(Span::mixed_site()=> #cfgs #element)
}

fn middleware(middleware: &Middleware<'_>) -> String {
    let (kind, function) = (json_string(middleware.kind.as_str()), json_string(&middleware.function.name()));
    let priority = middleware.priority;
    let (before, after) = (json_strings(&middleware.before), json_strings(&middleware.after));
    format!(
        "{{\"kind\":{kind},\"function\":{function},\"priority\":{priority},\"before\":[{before}],\"after\":[{after}]}}"
    )
}

fn tool(tool: &Tool<'_>) -> String {
    let (name, description) = (json_string(&tool.name), json_string(&doc_comment(&tool.function.attrs)));
    let effect = json_string(tool.effect.as_str());
    let timeout = tool.timeout.map_or("null".to_owned(), |time| time.to_string());
    let asks = if tool.asks { ",\"asks\":true" } else { "" };
    let parallel = if tool.parallel { ",\"parallel\":true" } else { "" };
    format!(
        "{{\"name\":{name},\"description\":{description},\"effect\":{effect},\"timeoutMs\":{timeout}{asks}{parallel}}}"
    )
}

/// `texts` as JSON strings, separated by commas.
fn json_strings(texts: &[LitStr]) -> String {
    texts.iter().map(|text| json_string(&text.value())).collect::<Vec<_>>().join(",")
}

/// `text` as a JSON string.
fn json_string(text: &str) -> String {
    let mut json = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            // Writing to a string cannot fail.
            '\0'..=' ' if letter != ' ' => write!(json, "\\u{:04x}", u32::from(letter)).unwrap_or_default(),
            _ => json.push(letter),
        }
    }
    json.push('"');
    json
}
