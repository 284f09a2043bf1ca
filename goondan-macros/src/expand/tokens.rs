//! Owns what all expansions of functions share: spans, parameters, and the call itself.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, ReturnType, Signature, Type};

use super::this;
use crate::check::Plan;
use crate::model::Function;

/// A span that shows errors at `tokens` and is ours in every other way.
pub(super) fn ours_at(tokens: &impl ToTokens) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}

/// Where errors about what a function returns belong.
pub(super) fn returned(sig: &Signature) -> Span {
    match &sig.output {
        ReturnType::Type(_, ty) => ours_at(ty),
        ReturnType::Default => ours_at(&sig.ident),
    }
}

/// A parameter of a function, without `self`.
pub(super) struct Parameter<'a> {
    /// The name for its value.
    pub(super) name: Ident,
    /// The type as it was written, for its span.
    pub(super) written: &'a Type,
    /// The type as it is written outside the block.
    pub(super) ty: TokenStream,
}

pub(super) fn parameters<'a>(plan: &Plan<'_>, sig: &'a Signature) -> Vec<Parameter<'a>> {
    let types = sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    });
    let this = this(plan.block);
    let parameter = |(index, written): (_, &'a Type)| Parameter {
        name: format_ident!("p{index}", span = Span::mixed_site()),
        written,
        ty: if plan.block.is_module() { written.to_token_stream() } else { outside(written.to_token_stream(), &this) },
    };
    types.enumerate().map(parameter).collect()
}

/// The type as it is written outside the `impl` block: `Self` has no meaning there.
fn outside(ty: TokenStream, this: &TokenStream) -> TokenStream {
    ty.into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(word) if word == "Self" => this.clone(),
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), outside(group.stream(), this));
                inside.set_span(group.span());
                TokenTree::from(inside).into()
            }
            token => token.into(),
        })
        .collect()
}

/// `let (p0, slots) = slots.take::<&ExtensionApi, _>();` for each parameter: `take` is the method, `inferred` tells how
/// many types it finds out by itself.
pub(super) fn takes(parameters: &[Parameter<'_>], take: &str, inferred: usize) -> TokenStream {
    let takes = parameters.iter().map(|Parameter { name, written, ty }| {
        let take = Ident::new(take, ours_at(written));
        let inferred = (0..inferred).map(|_| quote_spanned!(ours_at(written)=> , _));
        quote_spanned!(ours_at(written)=> let (#name, slots) = slots.#take::<#ty #(#inferred)*>();)
    });
    takes.collect()
}

/// `p0, p1`
pub(super) fn names(parameters: &[Parameter<'_>]) -> TokenStream {
    let names = parameters.iter().map(|parameter| &parameter.name);
    quote!(#(#names),*)
}

/// `p0(&mut given)?, p1(&mut given)?`
pub(super) fn reads(parameters: &[Parameter<'_>]) -> TokenStream {
    let reads =
        parameters.iter().map(|Parameter { name, written, .. }| quote_spanned!(ours_at(*written)=> #name(&mut given)?));
    quote!(#(#reads),*)
}

/// The schema of the parameter that has one, of the sort that `which` is: `config` or `input`.
/// ```text
/// use params::NoSchema as _;
/// Option::None
///     .or_else(|| SchemaOf::<StatusInput>::new().input())
///     .or_else(|| SchemaOf::<&ToolContext<'_>>::new().input())
///     .unwrap_or_else(nothing)
/// ```
pub(super) fn schema(parameters: &[Parameter<'_>], which: &str) -> TokenStream {
    let which = Ident::new(which, Span::mixed_site());
    let types = parameters.iter().map(|parameter| &parameter.ty);
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_imports)]
        use __goondan::params::NoSchema as _;
        __goondan::Option::None
            #(.or_else(|| __goondan::params::SchemaOf::<#types>::new().#which()))*
            .unwrap_or_else(__goondan::params::nothing)
    }
}

/// `<Window>::trim(&bound.this, p0, p1).await`; in a module, which has no instance, `trim(p0, p1).await`.
pub(super) fn call(plan: &Plan<'_>, sig: &Signature, values: &TokenStream) -> TokenStream {
    let (begun, returned) = (begin(plan, sig, values), returned(sig));
    let awaited = sig.asyncness.map(|_| quote_spanned!(returned=> .await));
    quote_spanned!(returned=> #begun #awaited)
}

/// Like [`call`], without waiting: the future of an `async fn`.
pub(super) fn begin(plan: &Plan<'_>, sig: &Signature, values: &TokenStream) -> TokenStream {
    let (this, function, returned) = (this(plan.block), &sig.ident, returned(sig));
    match plan.block.is_module() {
        true => quote_spanned!(returned=> #function(#values)),
        false => quote_spanned!(returned=> <#this>::#function(&bound.this, #values)),
    }
}

/// The `#[cfg]`s of a function, for everything that is there because of it.
pub(super) fn conditions(function: &Function) -> TokenStream {
    function.conditions().map(ToTokens::to_token_stream).collect()
}

/// The name of the struct that stands for `function` in the runtime.
pub(super) fn wrapper(prefix: &str, sig: &Signature) -> Ident {
    format_ident!("__{prefix}_{}", sig.ident.unraw(), span = ours_at(&sig.ident))
}
