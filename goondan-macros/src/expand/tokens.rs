//! Pieces that the expansions of all functions share: spans, parameters, and the call of the function.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, ReturnType, Signature, Type};

use crate::check::Plan;
use crate::model::{Block, Form, Function};

/// The location of `tokens` with mixed-site hygiene: errors point at the user's code, names resolve in ours.
pub(super) fn mixed_site_at(tokens: &impl ToTokens) -> Span {
    tokens.span().resolved_at(Span::mixed_site())
}

/// The span for errors about the return type.
pub(super) fn return_span(sig: &Signature) -> Span {
    match &sig.output {
        ReturnType::Type(_, ty) => mixed_site_at(ty),
        ReturnType::Default => mixed_site_at(&sig.ident),
    }
}

/// The type that implements `Extension`.
pub(super) fn self_type(block: &Block) -> TokenStream {
    match &block.form {
        Form::Impl(header) => header.self_ty.to_token_stream(),
        Form::Module(header) => quote_spanned!(mixed_site_at(&header.ident)=> Extension),
    }
}

/// A parameter of a function, without `self`.
pub(super) struct Parameter<'a> {
    /// The variable that holds its value in the expansion.
    pub(super) variable: Ident,
    /// The type in the signature, for its span.
    pub(super) written: &'a Type,
    /// The same type, valid outside the `impl` block.
    pub(super) ty: TokenStream,
}

pub(super) fn parameters<'a>(plan: &Plan<'_>, sig: &'a Signature) -> Vec<Parameter<'a>> {
    let types = sig.inputs.iter().filter_map(|arg| match arg {
        FnArg::Typed(arg) => Some(&*arg.ty),
        FnArg::Receiver(_) => None,
    });
    let this = self_type(plan.block);
    let parameter = |(index, written): (_, &'a Type)| Parameter {
        variable: format_ident!("p{index}", span = Span::mixed_site()),
        written,
        ty: match plan.block.is_module() {
            true => written.to_token_stream(),
            false => replace_self(written.to_token_stream(), &this),
        },
    };
    types.enumerate().map(parameter).collect()
}

/// Replaces `Self`, which is not valid outside the `impl` block.
fn replace_self(ty: TokenStream, this: &TokenStream) -> TokenStream {
    ty.into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(word) if word == "Self" => this.clone(),
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), replace_self(group.stream(), this));
                inside.set_span(group.span());
                TokenTree::from(inside).into()
            }
            token => token.into(),
        })
        .collect()
}

/// `let (p0, slots) = slots.take::<&ExtensionApi, _>();` for each parameter. `take` has, after the type of the
/// parameter, `inferred` more type parameters.
pub(super) fn take_slots(parameters: &[Parameter<'_>], inferred: usize) -> TokenStream {
    let statements = parameters.iter().map(|Parameter { variable, written, ty }| {
        let inferred = (0..inferred).map(|_| quote_spanned!(mixed_site_at(written)=> , _));
        quote_spanned!(mixed_site_at(written)=> let (#variable, slots) = slots.take::<#ty #(#inferred)*>();)
    });
    statements.collect()
}

/// `p0, p1`
pub(super) fn values(parameters: &[Parameter<'_>]) -> TokenStream {
    let variables = parameters.iter().map(|parameter| &parameter.variable);
    quote!(#(#variables),*)
}

/// `p0(&mut inputs)?, p1(&mut inputs)?`: the variables hold functions that read the values.
pub(super) fn read_values(parameters: &[Parameter<'_>]) -> TokenStream {
    let reads = parameters
        .iter()
        .map(|Parameter { variable, written, .. }| quote_spanned!(mixed_site_at(*written)=> #variable(&mut inputs)?));
    quote!(#(#reads),*)
}

/// The schema of the one parameter that is read from JSON. `which` is `config` or `input`.
/// ```text
/// use params::NoSchema as _;
/// SchemaOf::<StatusInput>::new().assert_object();
/// SchemaOf::<&ToolContext<'_>>::new().assert_object();
/// Option::None
///     .or_else(|| SchemaOf::<StatusInput>::new().input())
///     .or_else(|| SchemaOf::<&ToolContext<'_>>::new().input())
///     .unwrap_or_else(empty_object_schema)
/// ```
pub(super) fn schema(parameters: &[Parameter<'_>], which: &str) -> TokenStream {
    let which = Ident::new(which, Span::mixed_site());
    let types = parameters.iter().map(|parameter| &parameter.ty);
    let assertions = parameters.iter().map(|Parameter { written, ty, .. }| {
        quote_spanned!(mixed_site_at(written)=> __goondan::params::SchemaOf::<#ty>::new().assert_object();)
    });
    quote_spanned! {Span::mixed_site()=>
        #[allow(unused_imports)]
        use __goondan::params::NoSchema as _;
        #(#assertions)*
        __goondan::Option::None
            #(.or_else(|| __goondan::params::SchemaOf::<#types>::new().#which()))*
            .unwrap_or_else(__goondan::params::empty_object_schema)
    }
}

/// `<Window>::trim(&bound.this, p0, p1)`; in a module, which has no value, `trim(p0, p1)`.
pub(super) fn call(plan: &Plan<'_>, sig: &Signature, values: &TokenStream) -> TokenStream {
    let (this, function, span) = (self_type(plan.block), &sig.ident, return_span(sig));
    match plan.block.is_module() {
        true => quote_spanned!(span=> #function(#values)),
        false => quote_spanned!(span=> <#this>::#function(&bound.this, #values)),
    }
}

/// Like [`call`], followed by `.await` if the function is async.
pub(super) fn awaited_call(plan: &Plan<'_>, sig: &Signature, values: &TokenStream) -> TokenStream {
    let (call, span) = (call(plan, sig, values), return_span(sig));
    let awaited = sig.asyncness.map(|_| quote_spanned!(span=> .await));
    quote_spanned!(span=> #call #awaited)
}

/// The `#[cfg]` attributes of the function, which every item generated for it repeats.
pub(super) fn cfgs(function: &Function) -> TokenStream {
    function.cfgs().map(ToTokens::to_token_stream).collect()
}

/// The name of the generated struct that implements the handler trait of the function's role.
pub(super) fn wrapper(prefix: &str, sig: &Signature) -> Ident {
    format_ident!("__{prefix}_{}", sig.ident.unraw(), span = mixed_site_at(&sig.ident))
}
