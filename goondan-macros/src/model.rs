//! Owns the model: what an extension's block declares, as it was written.
//!
//! Signatures are parsed; bodies stay tokens, so that half-typed code still completes in an editor.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, ImplItem, ItemImpl, Signature, Token, Type, Visibility};

use crate::attr::Args;

/// `#[extension(args)] item`.
pub(crate) struct Model {
    pub(crate) args: Args,
    pub(crate) item: Item,
}

pub(crate) enum Item {
    Impl(Box<Block>),
    /// An item that is no `impl` block, without our attributes: its keyword, if there is one.
    Other(Option<Ident>, TokenStream),
}

/// An `impl` block.
pub(crate) struct Block {
    /// The attributes and everything else before the brace.
    pub(crate) header: ItemImpl,
    /// The same as it was written, to be written again.
    pub(crate) head: TokenStream,
    pub(crate) brace: Span,
    pub(crate) members: Vec<Member>,
}

pub(crate) enum Member {
    Function(Box<Function>),
    /// A constant, a macro call, or what else an `impl` block may hold. The helpers on it are a mistake.
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
    /// One of a later version.
    Tool,
    /// One of a later version.
    On,
    /// One of a later version.
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

    fn of(name: &Ident) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| name == known).map(|(_, role)| *role)
    }
}

impl Model {
    /// # Errors
    /// When the tokens are no item.
    pub(crate) fn parse(args: TokenStream, item: TokenStream) -> syn::Result<Self> {
        let item = match keyword(&item) {
            Some(keyword) if keyword == "impl" => Item::Impl(Box::new(Block::parse(item)?)),
            keyword => Item::Other(keyword, without_helpers(item)),
        };
        Ok(Self { args: Args::new(args), item })
    }
}

impl Block {
    fn parse(item: TokenStream) -> syn::Result<Self> {
        let mut head: Vec<_> = item.into_iter().collect();
        let body = match head.pop() {
            Some(TokenTree::Group(body)) => body,
            other => return Err(syn::Error::new_spanned(other, "expected the braces of an `impl` block")),
        };
        let head: TokenStream = head.into_iter().collect();
        let empty = TokenTree::from(Group::new(body.delimiter(), TokenStream::new()));
        let header = syn::parse2(head.clone().into_iter().chain([empty]).collect())?;
        Ok(Self { header, head, brace: body.span(), members: members.parse2(body.stream())? })
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.members.iter().filter_map(|member| match member {
            Member::Function(function) => Some(&**function),
            Member::Other(..) => None,
        })
    }

    /// The type as messages call it.
    pub(crate) fn name(&self) -> String {
        match &*self.header.self_ty {
            Type::Path(ty) => ty.path.segments.last().map(|last| last.ident.unraw().to_string()).unwrap_or_default(),
            ty => ty.to_token_stream().to_string(),
        }
    }
}

impl Function {
    /// The name as it is registered.
    pub(crate) fn name(&self) -> String {
        self.sig.ident.unraw().to_string()
    }
}

fn members(input: ParseStream<'_>) -> syn::Result<Vec<Member>> {
    let mut members = Vec::new();
    while !input.is_empty() {
        members.push(input.parse()?);
    }
    Ok(members)
}

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(Token![#]) && input.peek2(Token![!]) {
            let inner = Attribute::parse_inner(input)?;
            return Ok(Self::Other(Vec::new(), quote::quote!(#(#inner)*)));
        }
        let (helpers, attrs) = sort(input.call(Attribute::parse_outer)?);
        let ahead = input.fork();
        if ahead.parse::<Visibility>().is_ok() && ahead.parse::<Signature>().is_ok() {
            let (vis, sig, body) = (input.parse()?, input.parse()?, input.parse()?);
            return Ok(Self::Function(Box::new(Function { attrs, helpers, vis, sig, body })));
        }
        let item: ImplItem = input.parse()?;
        Ok(Self::Other(helpers, quote::quote!(#(#attrs)* #item)))
    }
}

/// Tells our attributes from the others.
fn sort(attrs: Vec<Attribute>) -> (Vec<Helper>, Vec<Attribute>) {
    let (mut helpers, mut others) = (Vec::new(), Vec::new());
    for attribute in attrs {
        match attribute.path().get_ident().and_then(Role::of) {
            Some(role) => helpers.push(Helper { role, args: Args::of(&attribute), attribute }),
            None => others.push(attribute),
        }
    }
    (helpers, others)
}

/// The word that tells what kind of item this is.
fn keyword(item: &TokenStream) -> Option<Ident> {
    const KEYWORDS: [&str; 11] =
        ["impl", "mod", "struct", "enum", "union", "trait", "fn", "type", "static", "use", "macro_rules"];
    item.clone().into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if KEYWORDS.iter().any(|keyword| word == keyword) => Some(word),
        _ => None,
    })
}

/// The tokens without our attributes, at any depth: of items whose parts we do not know.
pub(crate) fn without_helpers(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        let hash_before = matches!(kept.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == '#');
        match token {
            TokenTree::Group(group) if hash_before && is_helper(&group) => drop(kept.pop()),
            TokenTree::Group(group) => {
                let mut inside = Group::new(group.delimiter(), without_helpers(group.stream()));
                inside.set_span(group.span());
                kept.push(inside.into());
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn is_helper(brackets: &Group) -> bool {
    matches!(brackets.stream().into_iter().next(), Some(TokenTree::Ident(name)) if Role::of(&name).is_some())
}
