//! The attribute macros of goondan. Extensions import the facade crate `goondan` instead.
//!
//! # Layout
//! In the order in which tokens pass: `extension`: the whole way · `attr`: arguments of attributes · `model`: what was
//! written · `fault`, `check`: what is wrong with it · `expand`, `paths`: what it becomes.

use proc_macro::TokenStream;

mod attr;
mod check;
mod expand;
mod extension;
mod fault;
mod model;
mod paths;

/// Makes a type an extension: put it on the `impl` block that holds the functions of the extension.
///
/// ```text
/// /// Keeps the newest messages of a conversation.
/// #[goondan::extension(name = "message-window")]
/// impl MessageWindow {
///     #[init]
///     fn new(config: Config) -> Self { … }
///
///     #[middleware(turn, priority = -5)]
///     async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> { … }
/// }
/// ```
///
/// - `name` is the identity of the extension: lower-case words joined by hyphens, at most 63 characters.
/// - `crate` is the path of the crate `goondan`, when it is not `::goondan`.
/// - The doc comment of the block is the extension's description.
///
/// Inside the block:
/// - `#[init]`, exactly once: a function, async or not, without `self`, that returns `Self` or `Result<Self>`. It may
///   take the `ExtensionApi`, and one config that derives `Deserialize` and `JsonSchema`.
/// - `#[middleware(turn)]`, `#[middleware(step)]`, `#[middleware(toolCall)]`, any number of times: an async function
///   with `&self` that takes the context of its kind and `next`, and returns the result of its kind. The lower the
///   `priority`, the further out it runs; 0 unless said otherwise.
///
/// Parameters are found by type, in any order.
#[proc_macro_attribute]
pub fn extension(args: TokenStream, item: TokenStream) -> TokenStream {
    extension::extension(args.into(), item.into()).into()
}
