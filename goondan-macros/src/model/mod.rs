//! Owns the model: what an extension's block or module declares, as it was written.
//!
//! Signatures are parsed; bodies stay tokens, so that half-typed code still completes in an editor.

mod foreign;
mod member;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, ItemImpl, ItemMod, Type};

pub(crate) use foreign::without_helpers;
pub(crate) use member::{Function, Helper, Member, Role};

use crate::attr::Args;

/// `#[extension(args)] item`.
pub(crate) struct Model {
    pub(crate) args: Args,
    pub(crate) item: Item,
}

pub(crate) enum Item {
    Block(Box<Block>),
    /// An item that is no block of functions, without our attributes: its keyword, if there is one.
    Other(Option<Ident>, TokenStream),
}

/// An `impl` block, or a module with its body.
pub(crate) struct Block {
    pub(crate) form: Form,
    /// Everything before the brace as it was written, to be written again.
    pub(crate) head: TokenStream,
    pub(crate) brace: Span,
    /// The attributes that the body begins with.
    pub(crate) inner: Vec<Attribute>,
    pub(crate) members: Vec<Member>,
}

/// What stands before the brace.
pub(crate) enum Form {
    Impl(ItemImpl),
    Module(ItemMod),
}

impl Model {
    /// # Errors
    /// When the tokens are no item.
    pub(crate) fn parse(args: TokenStream, item: TokenStream) -> syn::Result<Self> {
        let item = match foreign::keyword(&item) {
            Some(keyword) if keyword == "impl" || (keyword == "mod" && ends_in_braces(&item)) => {
                Item::Block(Box::new(Block::parse(&keyword, item)?))
            }
            keyword => Item::Other(keyword, without_helpers(item)),
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
        let (form, read): (_, fn(ParseStream<'_>) -> _) = match keyword == "impl" {
            true => (Form::Impl(syn::parse2(header)?), Member::of_impl),
            false => (Form::Module(syn::parse2(header)?), Member::of_module),
        };
        let parser = |input: ParseStream<'_>| {
            let inner = Attribute::parse_inner(input)?;
            let mut members = Vec::new();
            while !input.is_empty() {
                members.push(read(input)?);
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

    /// The attributes before the head.
    pub(crate) fn attrs(&self) -> &[Attribute] {
        match &self.form {
            Form::Impl(header) => &header.attrs,
            Form::Module(header) => &header.attrs,
        }
    }

    pub(crate) fn is_module(&self) -> bool {
        matches!(self.form, Form::Module(_))
    }

    /// The type, or the module, as messages call it.
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
