//! Owns the members of an extension: functions, the attributes on them that are ours, and everything else.

use proc_macro2::{Group, Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, ImplItem, Path, Signature, Visibility};

use crate::attr::Args;

pub(crate) enum Member {
    Function(Box<Function>),
    /// A constant, a macro call, or what else may stand there. The helpers on it are a mistake.
    Other(Vec<Helper>, TokenStream),
}

pub(crate) struct Function {
    /// Without the helpers.
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) helpers: Vec<Helper>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

/// An attribute that only `#[extension]` knows.
pub(crate) struct Helper {
    pub(crate) role: Role,
    pub(crate) args: Args,
    pub(crate) attribute: Attribute,
}

/// What a helper makes of its function.
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

    pub(super) fn of(name: &Ident) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| name == known).map(|(_, role)| *role)
    }

    /// `tool`, or `goondan::tool`.
    fn of_path(path: &Path) -> Option<Self> {
        let mut segments = path.segments.iter();
        match (segments.next()?, segments.next(), segments.next()) {
            (name, None, _) => Self::of(&name.ident),
            (facade, Some(name), None) if facade.ident == "goondan" => Self::of(&name.ident),
            _ => None,
        }
    }
}

impl Function {
    /// The name as it is registered.
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }

    /// The conditions that it stands under.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.attrs.iter().filter(|attr| attr.path().is_ident("cfg"))
    }

    /// What the function is there for. It counts for its first helper; a rule judges the others.
    pub(crate) fn helper(&self) -> Option<&Helper> {
        self.helpers.first()
    }
}

impl Member {
    pub(super) fn of_impl(input: ParseStream<'_>) -> syn::Result<Self> {
        Self::parse::<ImplItem>(input)
    }

    pub(super) fn of_module(input: ParseStream<'_>) -> syn::Result<Self> {
        Self::parse::<syn::Item>(input)
    }

    fn parse<Other: Parse + ToTokens>(input: ParseStream<'_>) -> syn::Result<Self> {
        let (helpers, attrs) = sort(input.call(Attribute::parse_outer)?);
        let ahead = input.fork();
        if ahead.parse::<Visibility>().is_ok() && ahead.parse::<Signature>().is_ok() {
            let (vis, sig, body) = (input.parse()?, input.parse()?, input.parse()?);
            return Ok(Self::Function(Box::new(Function { attrs, helpers, vis, sig, body })));
        }
        let item: Other = input.parse()?;
        Ok(Self::Other(helpers, quote!(#(#attrs)* #item)))
    }
}

/// Tells our attributes from the others.
fn sort(attrs: Vec<Attribute>) -> (Vec<Helper>, Vec<Attribute>) {
    let (mut helpers, mut others) = (Vec::new(), Vec::new());
    for attribute in attrs {
        match Role::of_path(attribute.path()) {
            Some(role) => helpers.push(Helper { role, args: Args::of(&attribute), attribute }),
            None => others.push(attribute),
        }
    }
    (helpers, others)
}
