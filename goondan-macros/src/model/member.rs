//! Members of an extension: functions with their helper attributes, and everything else.

use proc_macro2::{Group, Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, ImplItem, Path, Signature, Visibility};

use crate::attr::Args;

pub(crate) enum Member {
    Function(Box<Function>),
    /// Any other item, such as a constant or a macro call. Helper attributes on it are a mistake, which `check`
    /// reports.
    Other(Vec<Helper>, TokenStream),
}

pub(crate) struct Function {
    /// All attributes but the helpers.
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) helpers: Vec<Helper>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

/// A helper attribute: one that only `#[extension]` reads, such as `#[tool]`.
pub(crate) struct Helper {
    pub(crate) role: Role,
    pub(crate) args: Args,
    pub(crate) attribute: Attribute,
}

/// The role that a helper attribute gives its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Init,
    Middleware,
    Tool,
    On,
    Cleanup,
}

impl Role {
    const ALL: [(&str, Self); 5] = [
        ("init", Self::Init),
        ("middleware", Self::Middleware),
        ("tool", Self::Tool),
        ("on", Self::On),
        ("cleanup", Self::Cleanup),
    ];

    pub(super) fn from_ident(name: &Ident) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| name == known).map(|(_, role)| *role)
    }

    /// Accepts `tool` and `goondan::tool`.
    fn from_path(path: &Path) -> Option<Self> {
        let mut segments = path.segments.iter();
        match (segments.next()?, segments.next(), segments.next()) {
            (name, None, _) => Self::from_ident(&name.ident),
            (facade, Some(name), None) if facade.ident == "goondan" => Self::from_ident(&name.ident),
            _ => None,
        }
    }
}

impl Function {
    /// The name under which the function is registered: without `r#`.
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    /// The `#[cfg]` attributes on the function.
    pub(crate) fn cfgs(&self) -> impl Iterator<Item = &Attribute> {
        self.attrs.iter().filter(|attr| attr.path().is_ident("cfg"))
    }

    /// The helper that decides the role of the function. Only the first one counts; `check` reports the others.
    pub(crate) fn helper(&self) -> Option<&Helper> {
        self.helpers.first()
    }
}

impl Member {
    pub(super) fn parse_in_impl(input: ParseStream<'_>) -> syn::Result<Self> {
        Self::parse::<ImplItem>(input)
    }

    pub(super) fn parse_in_module(input: ParseStream<'_>) -> syn::Result<Self> {
        Self::parse::<syn::Item>(input)
    }

    fn parse<Other: Parse + ToTokens>(input: ParseStream<'_>) -> syn::Result<Self> {
        let (helpers, attrs) = split_helpers(input.call(Attribute::parse_outer)?);
        let ahead = input.fork();
        if ahead.parse::<Visibility>().is_ok() && ahead.parse::<Signature>().is_ok() {
            let (vis, sig, body) = (input.parse()?, input.parse()?, input.parse()?);
            return Ok(Self::Function(Box::new(Function { attrs, helpers, vis, sig, body })));
        }
        let item: Other = input.parse()?;
        Ok(Self::Other(helpers, quote!(#(#attrs)* #item)))
    }
}

/// Separates the helper attributes from all others.
fn split_helpers(attrs: Vec<Attribute>) -> (Vec<Helper>, Vec<Attribute>) {
    let (mut helpers, mut others) = (Vec::new(), Vec::new());
    for attribute in attrs {
        match Role::from_path(attribute.path()) {
            Some(role) => helpers.push(Helper { role, args: Args::from_attribute(&attribute), attribute }),
            None => others.push(attribute),
        }
    }
    (helpers, others)
}
