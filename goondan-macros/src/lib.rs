//! The attribute macros of goondan. Depend on the facade crate `goondan`, which re-exports them.
//!
//! # Layout
//! In the order in which tokens pass through:
//! - `extension`: expands `#[extension]`, in the four stages that follow
//! - `attr`: arguments and doc comments of attributes
//! - `model`: the item, parsed but not validated
//! - `check`: validation; `errors` collects what it finds
//! - `expand`: code generation; `paths` names the crates in it
//! - `misplaced`: reports attributes that are used outside an extension
//!
//! `examples` has the examples of the documentation. The facade compiles them: a dev-dependency on it would build the
//! facade and all below it once more, because what a crate of macros depends on is built for the compiler.

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

use proc_macro::TokenStream;

mod attr;
mod check;
mod errors;
mod expand;
mod extension;
mod misplaced;
mod model;
mod paths;

/// Turns an `impl` block, or a module, into an extension.
///
/// Functions with one of the attributes below are called by the runtime. They are registered in source order.
/// Everything else in the block stays as it is. The doc comment is the description of the extension.
///
/// | option | value | default |
/// | --- | --- | --- |
/// | `name` | the identity of the extension: lower-case words of letters and digits, joined by hyphens, at most 63 characters | required |
/// | `requires` | a list of strings: capabilities that the host must offer; without them the extension is refused with `E_EXT_COMPAT` | `[]` |
/// | `guard` | no value: the extension refuses or hides something, so its failures are never skipped (`onError: skip` is refused with `E_EXT_GUARD`) | no guard |
/// | `crate` | the path of the crate `goondan`, if the dependency has another name | `::goondan` |
///
/// # Functions
/// | function | number | can take | returns |
/// | --- | --- | --- | --- |
/// | [`#[init]`](macro@init) | 1 | `ExtensionApi`, one config, `InitContext` | `Self` or `Result<Self>` |
/// | [`#[middleware]`](macro@middleware) | any | context, `Next`, `&ExtensionApi` | the `Result` of its kind |
/// | [`#[tool]`](macro@tool) | any | `&ToolContext<'_>`, one input, `&ExtensionApi` | `Result<T>`, where `T` derives `Serialize` |
/// | [`#[on]`](macro@on) | any | `&Event`, `&ExtensionApi` | `Result<()>` |
/// | [`#[cleanup]`](macro@cleanup) | 0 or 1 | `&ExtensionApi` | `()` or `Result<()>` |
///
/// - Parameters are matched by type, in any order, each at most once. Aliases work.
/// - All functions but `#[init]` take `&self` first.
/// - All functions but `#[init]` and blocking tools are async, and their futures are `Send`.
/// - The error of a `Result` can be any type that converts into `goondan::Error`.
/// - A function has one of the attributes. It is not generic, `unsafe`, `const` or `extern`.
/// - All functions but `#[init]` can be under `#[cfg]`.
///
/// # Examples
#[doc = include_str!("examples/extension.md")]
///
/// # Modules
/// An extension that needs no struct can be a module. Its functions take no `self`, `#[init]` is optional and returns
/// `()` or `Result<()>`, and other items are allowed. The macro adds a type `Extension` that names the extension, as
/// in `Agent::builder("a").extension::<greeter::Extension>(json!({}))`. The path in `crate` is resolved inside the
/// module.
///
#[doc = include_str!("examples/module.md")]
#[proc_macro_attribute]
pub fn extension(args: TokenStream, item: TokenStream) -> TokenStream {
    extension::extension(args.into(), item.into()).into()
}

/// Marks the function that makes an [`#[extension]`](macro@extension).
///
/// The runtime calls it when a conversation opens, and when a reload replaces the extension: each conversation has
/// its own value. An error or a panic is `E_EXT_INIT`: the conversation does not open, or continues with what it had.
///
/// `#[init]` has no options. An `impl` block has exactly one such function, a module at most one. It can be async,
/// takes no `self`, and cannot be under `#[cfg]`.
///
/// | parameter | use |
/// | --- | --- |
/// | `ExtensionApi` | the handle of the extension, which it may store |
/// | an owned type that derives `Deserialize` and `JsonSchema` | the config |
/// | `InitContext` | the names of extension, agent and conversation, the root of the bundle, a directory for files |
///
/// A config that does not fit its schema is refused with `E_EXT_CONFIG` before the function is called. Without a config
/// parameter, only an empty config is accepted.
///
/// Returns `Self` or `Result<Self>`; in a module, `()` or `Result<()>`.
///
/// # Examples
#[doc = include_str!("examples/init.md")]
#[proc_macro_attribute]
pub fn init(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("init", item.into()).into()
}

/// Marks a function of an [`#[extension]`](macro@extension) that runs around every turn, step or tool call.
///
/// `next` is the rest of the chain: the layers further in, and then the turn, step or tool call itself. The code
/// before `next.run(ctx)` is the pre phase, the code after it the post phase. `next` runs exactly once: running it
/// consumes it, and only it returns the result that the function must return. To refuse instead, return an error.
///
/// | option | value | default |
/// | --- | --- | --- |
/// | the kind, a word | `turn`: one input until its result · `step`: one model call and its tool calls · `toolCall`: one tool call | required |
/// | `priority` | a 32-bit integer; the lower, the further out | `0` |
/// | `before` | the name of another extension, or a list: further out than all its layers of this kind | `[]` |
/// | `after` | the same, but further in | `[]` |
///
/// `before` and `after` count more than priorities. An agent without the named extension is refused with `E_EXT_ORDER`,
/// unless the name ends in a question mark: `after = "skills?"`. Extensions that name one another in a circle are
/// refused too. `goondan order` shows the chains of an agent, with the reason for each place. Among equal priorities,
/// the layer registered first is further out.
///
/// | parameter | use |
/// | --- | --- |
/// | `&mut TurnContext<'_>`, `&mut StepContext<'_>` or `&mut ToolCallContext<'_>` | the context of the kind |
/// | `Next<'_, Turn>`, `Next<'_, Step>` or `Next<'_, ToolCall>` | required: the rest of the chain |
/// | `&ExtensionApi` | the handle of the extension |
///
/// Returns `Result<TurnResult>`, `Result<StepResult>` or `Result<ToolCallResult>`.
///
/// # Examples
#[doc = include_str!("examples/middleware.md")]
#[proc_macro_attribute]
pub fn middleware(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("middleware", item.into()).into()
}

/// Marks a function of an [`#[extension]`](macro@extension) as a tool that models can call.
///
/// The doc comment is the description that the model reads, and the input type is the schema of the arguments.
/// Arguments that do not fit the schema do not reach the function. An error is returned to the model, which can try
/// again.
///
/// | option | value | default |
/// | --- | --- | --- |
/// | `name` | the full name: a group, `__`, a tool; both are words of letters, digits and `-`, joined by single `_`; at most 64 characters | `<extension>__<function>` |
/// | `effect` | `read`: changes nothing, and may run beside other such calls · `idempotent`: may be repeated · `once`: a call that was started is never run again, even after a crash | `once` |
/// | `timeout` | the longest time of one call, a string such as `"1m 30s"`; units are `ms`, `s`, `m` and `h` | `tool_timeout` of the agent's policy |
/// | `present` | a string with arguments in braces, `"{path}"`, or a function of a `ShownCall`: presents a call to people | the arguments |
/// | `blocking` | a word without a value: runs a plain `fn` on a separate thread | an `async fn` |
///
/// | parameter | use |
/// | --- | --- |
/// | `&ToolContext<'_>` | the context of the call; not in a blocking tool, whose thread may outlive the call |
/// | an owned struct that derives `Deserialize` and `JsonSchema` | the input: arguments are a JSON object |
/// | `&ExtensionApi` | the handle of the extension |
///
/// Returns `Result<T>`, where `T` derives `Serialize`.
///
/// An async tool must not block its thread: nothing else runs on that thread, and no deadline can stop the tool.
///
/// # Examples
#[doc = include_str!("examples/tool.md")]
#[proc_macro_attribute]
pub fn tool(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("tool", item.into()).into()
}

/// Subscribes a function of an [`#[extension]`](macro@extension) to events.
///
/// The argument is a string: the name of an event, in which `*` matches any text. The function is called for one
/// event at a time. An error is reported, and neither the turn nor other handlers fail.
///
/// Handlers run beside the turn: neither the next step nor a tool call waits for them, nor does another handler. The
/// commit at the end of the turn does, for at most 5 seconds, so that state which they set is stored with the turn.
///
/// | option | value | default |
/// | --- | --- | --- |
/// | the pattern | a string of letters, digits, `.`, `_`, `-`, `:` and `*` | required |
///
/// | parameter | use |
/// | --- | --- |
/// | `&Event` | the event: `event.name()`, and `event.payload::<T>()` |
/// | `&ExtensionApi` | the handle of the extension |
///
/// Returns `Result<()>`.
///
/// # Examples
#[doc = include_str!("examples/on.md")]
#[proc_macro_attribute]
pub fn on(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("on", item.into()).into()
}

/// Marks the function of an [`#[extension]`](macro@extension) that releases what the extension holds.
///
/// The runtime calls it before the extension is dropped: when its conversation is closed, and when a reload removes
/// or replaces it. Extensions are cleaned up in reverse order of their registration. The function has a deadline; an
/// error, a panic or a missed deadline is logged.
///
/// `#[cleanup]` has no options. An extension has at most one such function.
///
/// | parameter | use |
/// | --- | --- |
/// | `&ExtensionApi` | the handle of the extension |
///
/// Returns `()` or `Result<()>`.
///
/// # Examples
#[doc = include_str!("examples/cleanup.md")]
#[proc_macro_attribute]
pub fn cleanup(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced::attribute("cleanup", item.into()).into()
}
