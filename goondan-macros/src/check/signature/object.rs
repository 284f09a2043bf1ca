//! Rules for the type that is read from JSON: the arguments of a call and a config are JSON objects.
//!
//! The rules know types by their names, to show the struct that is meant. `SchemaOf` in `goondan::params` catches the
//! same types behind aliases, and the runtime checks the schemas of all others.

use proc_macro2::Ident;
use syn::{FnArg, GenericArgument, Pat, PatType, PathArguments, Type, TypePath};

use super::Candidate;
use super::contexts::known;
use crate::check::words::source_text;
use crate::errors::Errors;

/// A model, and every host, passes arguments by name.
pub(super) fn takes_an_object_as_input(candidate: &Candidate<'_>, errors: &mut Errors) {
    let mut name = String::new();
    for word in candidate.function.name().split('_') {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(letters.as_str());
    }
    takes_an_object(candidate, "the arguments of a call are", "input", &format!("{name}Input"), errors);
}

/// A bundle writes a config as a mapping.
pub(super) fn takes_an_object_as_config(candidate: &Candidate<'_>, errors: &mut Errors) {
    takes_an_object(candidate, "a config is", "config", "Config", errors);
}

/// Reports the first type that is no object. The struct in the message has a field for each parameter that the author
/// wanted to read from JSON.
fn takes_an_object(candidate: &Candidate<'_>, what: &str, parameter: &str, name: &str, errors: &mut Errors) {
    let parameters: Vec<_> = candidate.function.sig.inputs.iter().filter_map(typed).collect();
    let Some(wrong) = parameters.iter().find(|parameter| as_field(&parameter.ty).is_some()) else { return };
    let fields = parameters.iter().filter_map(|parameter| match &*parameter.ty {
        ty if as_field(ty).is_some() => Some((parameter, as_field(ty)?)),
        ty if known(ty).is_some() || matches!(ty, Type::Reference(_) | Type::ImplTrait(_)) => None,
        ty => Some((parameter, source_text(ty))),
    });
    let fields: Vec<_> = fields.map(|(parameter, ty)| format!("{}: {ty}", field_name(&parameter.pat))).collect();
    let (ty, fields) = (source_text(&wrong.ty), fields.join(", "));
    errors.at(
        &wrong.ty,
        format!(
            "{} cannot take `{ty}`: {what} a JSON object; take `{parameter}: {name}`\n\
             the type is `#[derive(Deserialize, JsonSchema)] struct {name} {{ {fields} }}`",
            candidate.subject
        ),
    );
}

fn typed(arg: &FnArg) -> Option<&PatType> {
    match arg {
        FnArg::Typed(arg) => Some(arg),
        FnArg::Receiver(_) => None,
    }
}

fn field_name(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(name) if name.ident != "_" => name.ident.to_string().trim_start_matches('_').to_owned(),
        _ => "value".to_owned(),
    }
}

/// If no value of the type is a JSON object: the owned type that a field can have.
pub(super) fn as_field(ty: &Type) -> Option<String> {
    match ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => Some(format!("Vec<{}>", source_text(&slice.elem))),
            Type::Path(path) if path.path.is_ident("str") => Some("String".to_owned()),
            target => as_field(target),
        },
        Type::Array(_) | Type::Tuple(_) => Some(source_text(ty)),
        Type::Path(path) if is_no_object(path) => Some(source_text(ty)),
        _ => None,
    }
}

fn is_no_object(ty: &TypePath) -> bool {
    const SCALARS: [&str; 17] = [
        "bool", "char", "String", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
        "usize", "f32", "f64",
    ];
    let segments = &ty.path.segments;
    // `text::String` may be the author's own type.
    let standard = |first: &Ident| ["std", "core", "alloc"].iter().any(|name| first == name);
    if segments.len() > 1 && !segments.first().is_some_and(|first| standard(&first.ident)) {
        return false;
    }
    let Some(last) = segments.last() else { return false };
    match &last.arguments {
        PathArguments::None => SCALARS.iter().any(|scalar| last.ident == scalar),
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(argument)) => {
                last.ident == "Vec" || (last.ident == "Option" && as_field(argument).is_some())
            }
            _ => false,
        },
        PathArguments::Parenthesized(_) => false,
    }
}
