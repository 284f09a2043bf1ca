//! Arguments and doc comments of attributes, split but not validated.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, TokenStreamExt};
use syn::{Attribute, Expr, ExprArray, ExprLit, Lit, LitInt, LitStr, Meta, Path};

/// The tokens between the parentheses of an attribute, split at the commas.
pub(crate) struct Args {
    pub(crate) list: Vec<Arg>,
}

/// One argument: a word such as `turn`, or an option such as `priority = -5`.
#[derive(Clone, Default)]
pub(crate) struct Arg {
    pub(crate) key: TokenStream,
    /// The tokens after the `=`, if there is one.
    pub(crate) value: Option<TokenStream>,
}

impl Args {
    pub(crate) fn new(tokens: TokenStream) -> Self {
        let mut list = vec![Arg::default()];
        for token in tokens {
            let is = |wanted| matches!(&token, TokenTree::Punct(punct) if punct.as_char() == wanted);
            match list.last_mut() {
                Some(arg) if !is(',') => match &mut arg.value {
                    Some(value) => value.append(token),
                    None if is('=') => arg.value = Some(TokenStream::new()),
                    None => arg.key.append(token),
                },
                _ => list.push(Arg::default()),
            }
        }
        list.retain(|arg| !arg.key.is_empty() || arg.value.is_some());
        Self { list }
    }

    /// The arguments of `#[attribute(…)]`.
    pub(crate) fn from_attribute(attribute: &Attribute) -> Self {
        match &attribute.meta {
            Meta::Path(_) => Self::new(TokenStream::new()),
            Meta::List(list) => Self::new(list.tokens.clone()),
            Meta::NameValue(pair) => Self::new(pair.value.to_token_stream()),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arg> {
        self.list.iter().find(|arg| arg.name() == name)
    }
}

impl Arg {
    /// The source text of the key, without spaces: `priority`, `step.pre`, `"turn"`.
    pub(crate) fn name(&self) -> String {
        self.key.to_string().split_whitespace().collect()
    }

    /// The value, if it is a string literal.
    pub(crate) fn string(&self) -> Option<LitStr> {
        syn::parse2(self.value.clone()?).ok()
    }

    /// The value, if it is a list of string literals in brackets.
    pub(crate) fn strings(&self) -> Option<Vec<LitStr>> {
        let list: ExprArray = syn::parse2(self.value.clone()?).ok()?;
        list.elems.into_iter().map(|element| syn::parse2(element.into_token_stream()).ok()).collect()
    }

    /// The key, if it is a string literal and has no value.
    pub(crate) fn bare_string(&self) -> Option<LitStr> {
        self.value.is_none().then(|| syn::parse2(self.key.clone()).ok())?
    }

    pub(crate) fn path(&self) -> Option<Path> {
        syn::parse::Parser::parse2(Path::parse_mod_style, self.value.clone()?).ok()
    }

    pub(crate) fn integer(&self) -> Option<i32> {
        syn::parse2::<LitInt>(self.value.clone()?).ok()?.base10_parse().ok()
    }
}

impl ToTokens for Arg {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.key.to_tokens(tokens);
        self.value.to_tokens(tokens);
    }
}

/// The doc comment, without the space after each `///`. A doc attribute whose text comes from another macro, such as
/// `#[doc = include_str!("…")]`, is not expanded yet and is left out.
pub(crate) fn doc_comment<'a>(attrs: impl IntoIterator<Item = &'a Attribute>) -> String {
    let lines: Vec<_> = attrs.into_iter().filter_map(doc_text).collect();
    let text = lines.iter().flat_map(|text| text.split('\n')).map(|line| line.strip_prefix(' ').unwrap_or(line));
    text.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn doc_text(attr: &Attribute) -> Option<String> {
    match &attr.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}
