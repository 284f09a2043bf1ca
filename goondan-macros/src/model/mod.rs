//! The item under `#[extension]`, parsed but not validated.
//!
//! Signatures are parsed; bodies stay tokens, so that completion in an editor works on code that does not parse yet.

mod member;
mod unparsed;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, ItemImpl, ItemMod, Type};

pub(crate) use member::{Function, Helper, Member, Role};
pub(crate) use unparsed::strip_helpers;

use crate::attr::Args;

/// `#[extension(args)] item`.
pub(crate) struct Model {
    pub(crate) args: Args,
    pub(crate) item: Item,
}

pub(crate) enum Item {
    Block(Box<Block>),
    /// Any other item: its keyword, if it has one, and its tokens without the helper attributes.
    Other(Option<Ident>, TokenStream),
}

/// An `impl` block, or a module with its body.
pub(crate) struct Block {
    pub(crate) form: Form,
    /// The unchanged tokens before the brace, which the expansion repeats.
    pub(crate) head: TokenStream,
    pub(crate) brace: Span,
    /// The inner attributes at the start of the body.
    pub(crate) inner: Vec<Attribute>,
    pub(crate) members: Vec<Member>,
}

/// The parsed head, with an empty body.
pub(crate) enum Form {
    Impl(ItemImpl),
    Module(ItemMod),
}

impl Model {
    /// # Errors
    /// When an `impl` block or a module does not parse.
    pub(crate) fn parse(args: TokenStream, item: TokenStream) -> syn::Result<Self> {
        let item = match unparsed::keyword(&item) {
            Some(keyword) if keyword == "impl" || (keyword == "mod" && ends_in_braces(&item)) => {
                Item::Block(Box::new(Block::parse(&keyword, item)?))
            }
            keyword => Item::Other(keyword, strip_helpers(item)),
        };
        Ok(Self { args: Args::new(args), item })
    }
}

fn ends_in_braces(item: &TokenStream) -> bool {
    matches!(item.clone().into_iter().last(), Some(TokenTree::Group(_)))
}

impl Block {
    fn parse(keyword: &Ident, item: TokenStream) -> syn::Result<Self> {
        let mut head: Vec<_> = item.into_iter().collect();
        let body = match head.pop() {
            Some(TokenTree::Group(body)) => body,
            other => return Err(syn::Error::new_spanned(other, "expected the braces of an `impl` block")),
        };
        let head: TokenStream = head.into_iter().collect();
        let empty = TokenTree::from(Group::new(body.delimiter(), TokenStream::new()));
        let header = head.clone().into_iter().chain([empty]).collect();
        let (form, parse_member): (_, fn(ParseStream<'_>) -> _) = match keyword == "impl" {
            true => (Form::Impl(syn::parse2(header)?), Member::parse_in_impl),
            false => (Form::Module(syn::parse2(header)?), Member::parse_in_module),
        };
        let parser = |input: ParseStream<'_>| {
            let inner = Attribute::parse_inner(input)?;
            let mut members = Vec::new();
            while !input.is_empty() {
                members.push(parse_member(input)?);
            }
            Ok((inner, members))
        };
        let (inner, members) = parser.parse2(body.stream())?;
        Ok(Self { form, head, brace: body.span(), inner, members })
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = &Function> {
        self.members.iter().filter_map(|member| match member {
            Member::Function(function) => Some(&**function),
            Member::Other(..) => None,
        })
    }

    /// The outer attributes.
    pub(crate) fn attrs(&self) -> &[Attribute] {
        match &self.form {
            Form::Impl(header) => &header.attrs,
            Form::Module(header) => &header.attrs,
        }
    }

    pub(crate) fn is_module(&self) -> bool {
        matches!(self.form, Form::Module(_))
    }

    /// The name of the type or the module in messages.
    pub(crate) fn name(&self) -> String {
        match &self.form {
            Form::Module(header) => header.ident.unraw().to_string(),
            Form::Impl(header) => match &*header.self_ty {
                Type::Path(ty) => {
                    ty.path.segments.last().map(|last| last.ident.unraw().to_string()).unwrap_or_default()
                }
                ty => ty.to_token_stream().to_string(),
            },
        }
    }
}
