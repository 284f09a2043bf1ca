//! Errors about the item under `#[extension]`, and about its arguments.

use quote::quote;

use super::{error_of_args, errors, one};

#[test]
fn extension_on_a_struct() {
    assert_eq!(
        one(errors(
            quote!(name = "window"),
            quote!(
                pub struct Window;
            )
        )),
        "`#[extension]` must be on an `impl` block or a module, not on the struct `Window`; move it to `impl Window { … }`"
    );
}

#[test]
fn extension_on_other_items() {
    let error = |item: proc_macro2::TokenStream| one(errors(quote!(name = "window"), item));
    assert_eq!(
        error(quote!(
            fn trim() {}
        )),
        "`#[extension]` must be on an `impl` block or a module, not on the fn `trim`; put the function into \
         `mod name { … }`, and `#[extension]` on that"
    );
    assert_eq!(
        error(quote!(
            trait Window {}
        )),
        "`#[extension]` must be on an `impl` block or a module, not on the trait `Window`; move it to the `impl` block \
         of a type"
    );
}

#[test]
fn extension_on_a_trait_impl() {
    let item = quote!(
        impl fmt::Display for Window {
            #[init]
            fn fmt(&self) {}
        }
    );
    assert_eq!(
        one(errors(quote!(name = "window"), item)),
        "extension `Window` must be an inherent `impl`; move its functions from `impl fmt::Display for Window` to \
         `impl Window { … }`"
    );
}

#[test]
fn generic_extension() {
    let item = quote!(
        impl<T> Window<T> {
            #[init]
            fn new() -> Self {}
        }
    );
    assert_eq!(
        one(errors(quote!(name = "window"), item)),
        "extension `Window` must not be generic; replace `<T>` by concrete types"
    );
}

#[test]
fn no_name() {
    assert_eq!(
        error_of_args(quote!()),
        "extension `MessageWindow` has no name; write `#[extension(name = \"message-window\")]`"
    );
}

#[test]
fn name_that_is_not_a_string() {
    let expected = "option `name` takes a string; write `name = \"message-window\"`";
    for args in [quote!(name), quote!(name =), quote!(name = window), quote!(name = 3)] {
        assert_eq!(error_of_args(args), expected);
    }
}

#[test]
fn name_against_the_grammar() {
    let error = |name: &str| error_of_args(quote!(name = #name));
    assert_eq!(error("MessageWindow"), "`MessageWindow` is not a legal extension name; write `message-window`");
    assert_eq!(error("message_window"), "`message_window` is not a legal extension name; write `message-window`");
    assert_eq!(
        error(&"a".repeat(64)),
        format!("`{}` is not a legal extension name; it has 64 characters; use at most 63", "a".repeat(64))
    );
    assert_eq!(error(""), "extension `MessageWindow` has an empty name; write `name = \"message-window\"`");
    assert_eq!(error("-"), "`-` is not a legal extension name; write `message-window`");
    for illegal in ["1a", "é"] {
        assert_eq!(
            error(illegal),
            format!(
                "`{illegal}` is not a legal extension name; use lower-case letters and digits, in words joined by \
                 single hyphens, starting with a letter"
            )
        );
    }
    assert_eq!(
        error_of_args(quote!(name = "a", name = "b")),
        "option `name` of `#[extension]` is given twice; keep one"
    );
}

#[test]
fn unknown_option_of_extension() {
    assert_eq!(
        error_of_args(quote!(name = "a", crates = b)),
        "unknown option `crates` of `#[extension]`; write `crate`"
    );
    assert_eq!(
        error_of_args(quote!(name = "a", description = "b")),
        "unknown option `description` of `#[extension]`; write the text as a doc comment, `/// …`"
    );
    assert_eq!(
        error_of_args(quote!(name = "a", version = "b")),
        "unknown option `version` of `#[extension]`; `name`, `requires`, `guard` and `crate` can be given"
    );
}

#[test]
fn crate_that_is_not_a_path() {
    assert_eq!(
        error_of_args(quote!(name = "a", crate = "goondan")),
        "option `crate` takes a path; write `crate = the_name_of_goondan_here`"
    );
}

#[test]
fn guard_with_a_value() {
    assert_eq!(
        error_of_args(quote!(name = "a", guard = true)),
        "option `guard` takes no value; write `guard`, or remove it"
    );
}

#[test]
fn requires_that_is_not_a_list_of_strings() {
    assert_eq!(
        error_of_args(quote!(name = "a", requires = "workspace")),
        "option `requires` takes a list of strings; write `requires = [\"workspace\"]`"
    );
    for value in [quote!(), quote!(workspace), quote!([workspace]), quote!(["a", 3])] {
        assert_eq!(
            error_of_args(quote!(name = "a", requires = #value)),
            "option `requires` takes a list of strings; write `requires = [\"…\"]`"
        );
    }
}

#[test]
fn empty_requirement() {
    assert_eq!(
        error_of_args(quote!(name = "a", requires = ["workspace", " "])),
        "option `requires` holds an empty string; name what the host must offer, or remove it"
    );
}

#[test]
fn name_without_its_key() {
    assert_eq!(
        error_of_args(quote!("notes")),
        "unknown option `\"notes\"` of `#[extension]`; write `name = \"notes\"`"
    );
    assert_eq!(
        error_of_args(quote!(name: "notes")),
        "unknown option `name:\"notes\"` of `#[extension]`; write `name = \"notes\"`"
    );
}
