//! Owns the record in the expansion: what a file tells of the extension without running anything of it.

use std::fmt::Write;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::LitStr;

use super::tokens::conditions;
use crate::attr::doc_comment;
use crate::check::{Layer, Plan, Tool};
use crate::model::Function;

/// The record is text before the contract crate is seen; a test of the facade compares this with `API_VERSION`.
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
/// The section has this name and this meaning in ELF files, which are what can be inspected.
pub(super) fn record(plan: &Plan<'_>) -> TokenStream {
    let docs = doc_comment(plan.block.attrs().iter().chain(&plan.block.inner));
    let (api_version, name, description) = (text(API_VERSION), text(&plan.name.value()), text(&docs));
    let middlewares = plan.layers().map(|layer| member(layer.function, &middleware(layer)));
    let tools = plan.tools().map(|tool| member(tool.function, &self::tool(tool)));
    let subscriptions = plan.subscriptions().map(|on| member(on.function, &text(&on.pattern.value())));
    let requires = plan.requires.iter().map(|requirement| text(&requirement.value())).collect::<Vec<_>>().join(",");

    let package = format!("{{\"apiVersion\":{api_version},\"package\":\"");
    let rest = format!("\",\"name\":{name},\"description\":{description},\"middlewares\":[");
    let end = format!("],\"requires\":[{requires}]}}");
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

/// A member of a list, there when `function` is.
fn member(function: &Function, json: &str) -> TokenStream {
    let (conditions, part) = (conditions(function), format!(",{json}"));
    quote_spanned!(Span::mixed_site()=> #conditions #part)
}

fn middleware(layer: &Layer<'_>) -> String {
    let (kind, function) = (text(layer.kind.word()), text(&layer.function.name()));
    let priority = layer.priority;
    let list = |names: &[LitStr]| names.iter().map(|name| text(&name.value())).collect::<Vec<_>>().join(",");
    let (before, after) = (list(&layer.before), list(&layer.after));
    format!(
        "{{\"kind\":{kind},\"function\":{function},\"priority\":{priority},\"before\":[{before}],\"after\":[{after}]}}"
    )
}

fn tool(tool: &Tool<'_>) -> String {
    let (name, description) = (text(&tool.name), text(&doc_comment(&tool.function.attrs)));
    let (effect, timeout) = (text(tool.effect.word()), tool.timeout.map_or("null".to_owned(), |time| time.to_string()));
    format!("{{\"name\":{name},\"description\":{description},\"effect\":{effect},\"timeoutMs\":{timeout}}}")
}

/// `text` as a JSON string.
fn text(text: &str) -> String {
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
