//! The attribute macros of goondan. Extensions import the facade crate `goondan` instead.
//!
//! # Layout
//! In the order in which tokens pass: `extension`: the whole way · `attr`: arguments of attributes · `model`: what was
//! written · `errors`, `check`: what is wrong with it · `expand`, `paths`: what it becomes · `misplaced`: attributes that are not
//! where they belong.

use proc_macro::TokenStream;

mod attr;
mod check;
mod errors;
mod expand;
mod extension;
mod misplaced;
mod model;
mod paths;

/// Makes a type, or a module, an extension: put it on the `impl` block, or the `mod`, that holds the functions of the
/// extension.
///
/// ```text
/// /// Keeps the newest messages of a conversation.
/// #[goondan::extension(name = "message-window")]
/// impl MessageWindow {
///     #[init]
///     async fn new(api: ExtensionApi, config: Config) -> Result<Self> { … }
///
///     #[middleware(turn, priority = -5)]
///     async fn trim(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> { … }
///
///     /// Tells how many messages the window keeps.
///     #[tool(name = "message-window__status", effect = read, timeout = "5s")]
///     async fn status(&self, ctx: &ToolContext<'_>, input: StatusInput) -> Result<Status> { … }
///
///     #[on("turn.completed")]
///     async fn count(&self, event: &Event) -> Result<()> { … }
///
///     #[cleanup]
///     async fn close(&self) { … }
/// }
/// ```
///
/// - `name` is the identity of the extension: lower-case words joined by hyphens, at most 63 characters.
/// - `requires = ["…"]` lists what the host must offer for the extension to run.
/// - `crate` is the path of the crate `goondan`, when it is not `::goondan`.
/// - The doc comment is the extension's description.
///
/// The functions inside, each with one role:
/// - `#[init]`, exactly once, async or not, without `self`, returns `Self` or `Result<Self>`. It may take the
///   `ExtensionApi`, and one config that derives `Deserialize` and `JsonSchema`.
/// - `#[middleware(turn)]`, `#[middleware(step)]`, `#[middleware(toolCall)]`, any number of times: takes the context of
///   its kind and `next`, and returns the result of its kind. The lower the `priority`, the further out it runs; 0 unless
///   said otherwise.
///   - `before = "logging"`, or a list, puts it further out than the layers of that kind of another extension, whatever the
///     priorities, and `after = "skills"` further in. Names are those that the agent uses. An agent without that extension is
///     refused, unless the name ends in a question mark, as in `after = "skills?"`.
/// - `#[tool]`, any number of times: may take `&ToolContext<'_>` and one input that derives `Deserialize` and
///   `JsonSchema`, and returns a `Result` whose value derives `Serialize`. Its doc comment is what models read.
///   - `name` is the full name, such as `notes__add`; `<extension>__<function>` unless said otherwise.
///   - `effect` is what a call does to the world: `read`, `idempotent`, or `once`, which is the default.
///   - `timeout = "5s"` is how long a call may take; `ms`, `s`, `m` and `h` are known.
///   - `blocking` lets a plain `fn` run on a thread of its own. It cannot take `&ToolContext`.
/// - `#[on("turn.completed")]`, any number of times: may take the `&Event`, and returns `Result<()>`. `*` stands for any
///   text, as in `"workspace.*"`.
/// - `#[cleanup]`, at most once: runs before the extension goes away, and returns nothing or `Result<()>`.
///
/// All but `#[init]` and blocking tools are async, take `&self`, and may take `&ExtensionApi`. Parameters are found by
/// type, in any order. What is registered is registered in the order of the source.
///
/// # Modules
/// An extension without a type is a module with its body. Its functions take no `self`, `#[init]` may be left out and
/// returns nothing or `Result<()>`, and everything else in the module stays as it is. The module gets a type `Extension`
/// without values, so that programs can name it: `.extension::<hello::Extension>(json!({}))`. The path of `crate` is
/// looked up inside the module.
///
/// ```text
/// #[goondan::extension(name = "hello")]
/// mod hello {
///     #[tool(effect = read)]
///     async fn greet(input: Person, api: &ExtensionApi) -> Result<String> { … }
/// }
/// ```
#[proc_macro_attribute]
pub fn extension(args: TokenStream, item: TokenStream) -> TokenStream {
    extension::extension(args.into(), item.into()).into()
}

/// Makes a function of an [`#[extension]`](macro@extension) the one that makes the extension: `#[init]`.
#[proc_macro_attribute]
pub fn init(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("init", item.into()).into()
}

/// Makes a function of an [`#[extension]`](macro@extension) a layer around every turn, step or tool call:
/// `#[middleware(turn)]`, `#[middleware(step)]`, `#[middleware(toolCall, priority = -5)]`.
#[proc_macro_attribute]
pub fn middleware(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("middleware", item.into()).into()
}

/// Makes a function of an [`#[extension]`](macro@extension) a tool that models can call:
/// `#[tool(name = "notes__add", effect = once, timeout = "5s")]`.
#[proc_macro_attribute]
pub fn tool(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("tool", item.into()).into()
}

/// Makes a function of an [`#[extension]`](macro@extension) listen to events: `#[on("turn.completed")]`.
#[proc_macro_attribute]
pub fn on(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("on", item.into()).into()
}

/// Makes a function of an [`#[extension]`](macro@extension) run before the extension goes away: `#[cleanup]`.
#[proc_macro_attribute]
pub fn cleanup(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("cleanup", item.into()).into()
}
