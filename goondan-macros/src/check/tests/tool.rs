//! Errors about functions under `#[tool]`.

use proc_macro2::TokenStream;
use quote::quote;

use super::{error_of, errors, expand, one};

/// The one error of a tool that is valid but for `options`.
fn error_of_options(options: TokenStream) -> String {
    error_of(quote!(
        #[tool(#options)]
        async fn search(&self) -> Result<()> {}
    ))
}

#[test]
fn name_against_the_grammar() {
    let error = |name: &str| error_of_options(quote!(name = #name));
    for (illegal, remedy) in [
        ("search", "`__` joins a group and a tool; write `window__search`"),
        ("deep_search", "`__` joins a group and a tool; write `window__deep_search`"),
        ("__b", "nothing comes before `__`; write `window__b`"),
        ("a__", "nothing comes after `__`; write `a__search`"),
        ("a__b__c", "`__` may occur only once, between a group and a tool; write `a__b_c`"),
        ("a__é", "`é` cannot be in it; use letters, digits and hyphens, in words joined by `_`"),
        ("a b__c", "` ` cannot be in it; use letters, digits and hyphens, in words joined by `_`"),
        ("a___b", "words are joined by single `_`, and `__` joins a group and a tool; write `window__search`"),
        ("_a__b", "words are joined by single `_`, and `__` joins a group and a tool; write `window__search`"),
        ("a__b_", "words are joined by single `_`, and `__` joins a group and a tool; write `window__search`"),
    ] {
        assert_eq!(error(illegal), format!("`{illegal}` is not a legal tool name; {remedy}"));
    }
    let long = format!("a__{}", "b".repeat(62));
    assert_eq!(error(&long), format!("`{long}` is not a legal tool name; it has 65 characters; use at most 64"));
    assert_eq!(error(""), "tool `search` has an empty name; write `name = \"window__search\"`");
}

#[test]
fn name_that_is_not_a_string() {
    for option in [quote!(name), quote!(name = search), quote!(name = 3)] {
        assert_eq!(error_of_options(option), "option `name` takes a string; write `name = \"window__search\"`");
    }
}

#[test]
fn function_name_that_makes_no_legal_tool_name() {
    assert_eq!(
        error_of(quote!(
            #[tool]
            async fn _search(&self) -> Result<()> {}
        )),
        "`window___search` is not a legal tool name; give one, as in `#[tool(name = \"window__search\")]`"
    );
    let long = quote::format_ident!("{}", "b".repeat(57));
    assert_eq!(
        error_of(quote!(#[tool] async fn #long(&self) -> Result<()> {})),
        format!(
            "`window__{long}` is not a legal tool name; give a shorter one, as in `#[tool(name = \"window__search\")]`"
        )
    );
}

#[test]
fn default_name_under_an_illegal_extension_name_is_no_second_error() {
    let item = quote!(
        impl Window {
            #[init]
            fn new() -> Self {}
            #[tool]
            async fn search(&self) -> Result<()> {}
        }
    );
    assert_eq!(one(errors(quote!(name = "Window"), item)), "`Window` is not a legal extension name; write `window`");
}

#[test]
fn two_tools_with_one_name() {
    let expected = |function| format!("function `{function}` is a second tool `window__a`; give it another name");
    let by_name = quote! {
        #[tool]
        async fn a(&self) -> Result<()> {}
        #[tool(name = "window__a")]
        async fn b(&self) -> Result<()> {}
    };
    let by_default = quote! {
        #[tool(name = "window__a")]
        async fn b(&self) -> Result<()> {}
        #[tool]
        async fn a(&self) -> Result<()> {}
    };
    assert_eq!(error_of(by_name), expected("b"));
    assert_eq!(error_of(by_default), expected("a"));
}

#[test]
fn unknown_effect() {
    let error = |effect: TokenStream| error_of_options(quote!(effect = #effect));
    assert_eq!(error(quote!(reed)), "unknown effect `reed`; write `effect = read`");
    assert_eq!(error(quote!(Idempotent)), "unknown effect `Idempotent`; write `effect = idempotent`");
    assert_eq!(error(quote!("once")), "unknown effect `\"once\"`; write `effect = once`");
    assert_eq!(error(quote!(write)), "unknown effect `write`; write `read`, `idempotent` or `once`");
    assert_eq!(error_of_options(quote!(effect)), "option `effect` takes a word; write `read`, `idempotent` or `once`");
}

#[test]
fn timeout_without_a_unit() {
    let error = |timeout: TokenStream| error_of_options(quote!(timeout = #timeout));
    assert_eq!(error(quote!(5)), "option `timeout` takes a string; write `timeout = \"5s\"`");
    assert_eq!(error(quote!(30s)), "option `timeout` takes a string; write `timeout = \"30s\"`");
    assert_eq!(error(quote!(LIMIT)), "option `timeout` takes a string; write `timeout = \"5s\"`");
    assert_eq!(error(quote!("5")), "`5` is not a time; write `\"5s\"`");
}

#[test]
fn timeout_that_is_not_a_time() {
    let error = |timeout: &str| error_of_options(quote!(timeout = #timeout));
    for illegal in ["", "s", "5 s", "1.5s", "5sec", "-5s", "1d", "5s,3ms", "99999999999999999999s", "9999999999999999h"]
    {
        assert_eq!(
            error(illegal),
            format!(
                "`{illegal}` is not a time; write whole numbers, each with `ms`, `s`, `m` or `h`, as in `\"1m 30s\"`"
            )
        );
    }
    assert_eq!(error("0s"), "`0s` is not a time; a call needs some time; write `\"5s\"`, or leave the option out");
}

#[test]
fn present_is_a_text_or_a_function() {
    assert_eq!(
        error_of_options(quote!(present = 5)),
        "option `present` takes a text or a function; write `present = \"{argument}\"`, or `present = path::to::function`"
    );
    for (line, error) in [
        ("{a", "`{` is not closed; write `{{` for a brace"),
        ("a}", "`}` closes nothing; write `}}` for a brace"),
        ("{}", "`{}` names no argument; write it as in `{path}`"),
        ("{a b}", "`{a b}` names no argument; write it as in `{path}`"),
        ("{a {b}", "`{a {b}` names no argument; write it as in `{path}`"),
    ] {
        assert_eq!(error_of_options(quote!(present = #line)), error);
    }
}

#[test]
fn unknown_option_of_tool() {
    assert_eq!(error_of_options(quote!(timout = "5s")), "unknown option `timout` of `#[tool]`; write `timeout`");
    assert_eq!(
        error_of_options(quote!(description = "finds")),
        "unknown option `description` of `#[tool]`; write the text as a doc comment, `/// …`"
    );
    assert_eq!(
        error_of_options(quote!(schema = "finds")),
        "unknown option `schema` of `#[tool]`; `name`, `effect`, `timeout`, `blocking`, `asks`, `parallel` and `present` can be given"
    );
    assert_eq!(
        error_of_options(quote!(effect = read, effect = once)),
        "option `effect` of `#[tool]` is given twice; keep one"
    );
}

#[test]
fn a_tool_that_reads_is_not_called_parallel() {
    assert_eq!(
        error_of_options(quote!(effect = read, parallel)),
        "a tool that only reads runs beside others anyway; remove `parallel`"
    );
}

#[test]
fn plain_function_without_blocking() {
    assert_eq!(
        error_of(quote!(
            #[tool]
            fn search(&self) -> Result<()> {}
        )),
        "tool `search` must be async; add `async` before `fn`, or `blocking` to its `#[tool]` if it blocks its thread"
    );
}

#[test]
fn async_function_with_blocking() {
    assert_eq!(
        error_of_options(quote!(blocking)),
        "tool `search` is blocking and must not be async; remove `async`, or `blocking` from its `#[tool]`"
    );
}

#[test]
fn blocking_with_a_value() {
    assert_eq!(
        error_of(quote!(
            #[tool(blocking = true)]
            fn search(&self) -> Result<()> {}
        )),
        "option `blocking` takes no value; write `blocking`, or remove it"
    );
}

#[test]
fn blocking_tool_with_the_context() {
    for ty in [quote!(&ToolContext<'_>), quote!(&goondan::tool::ToolContext)] {
        assert_eq!(
            error_of(quote!(#[tool(blocking)] fn search(&self, ctx: #ty) -> Result<()> {})),
            "tool `search` is blocking and cannot take `&ToolContext`; remove it, or make the tool async: its thread may \
             outlive the call"
        );
    }
}

#[test]
fn borrowed_input() {
    let error = |ty: TokenStream| error_of(quote!(#[tool] async fn search(&self, input: #ty) -> Result<()> {}));
    assert_eq!(error(quote!(&mut Input)), "tool `search` must own its input; take `Input` instead of `&mut Input`");
}

#[test]
fn tool_that_returns_nothing() {
    assert_eq!(
        error_of(quote!(
            #[tool]
            async fn search(&self) {}
        )),
        "tool `search` returns nothing; add `-> Result<Output>`"
    );
}

#[test]
fn tool_without_self() {
    assert_eq!(
        error_of(quote!(
            #[tool]
            async fn search() -> Result<()> {}
        )),
        "tool `search` must take the extension; add `&self` as its first parameter"
    );
}

#[test]
fn two_tools_with_one_name_under_cfg() {
    let item = quote!(
        impl Window {
            #[init]
            fn new() -> Self {}
            #[cfg(unix)]
            #[tool]
            async fn a(&self) -> Result<()> {}
            #[cfg(not(unix))]
            #[tool]
            async fn a(&self) -> Result<()> {}
        }
    );
    assert_eq!(errors(quote!(name = "window"), item), [""; 0]);
}

#[test]
fn parameters_that_a_tool_cannot_take() {
    let error = |ty: TokenStream| error_of(quote!(#[tool] async fn search(&self, it: #ty) -> Result<()> {}));
    assert_eq!(
        error(quote!(&ToolCallContext<'_>)),
        "tool `search` cannot take `ToolCallContext`; take `&ToolContext<'_>` instead"
    );
    assert_eq!(error(quote!(&Event)), "tool `search` cannot take `Event`; remove this parameter");
    assert_eq!(error(quote!(ExtensionApi)), "tool `search` must borrow the handle; take `&ExtensionApi`");
    for ty in [quote!(InitContext), quote!(&InitContext)] {
        let refused = "tool `search` cannot take `InitContext`: only `#[init]` can; keep it in the extension";
        assert_eq!(error(ty), refused);
    }
    assert_eq!(error(quote!(ToolContext<'_>)), "tool `search` must borrow its context; take `&ToolContext<'_>`");
}

#[test]
fn values_without_their_keys() {
    assert_eq!(
        error_of_options(quote!("window__search")),
        "unknown option `\"window__search\"` of `#[tool]`; write `name = \"window__search\"`"
    );
    assert_eq!(error_of_options(quote!(read)), "unknown option `read` of `#[tool]`; write `effect = read`");
}

#[test]
fn the_same_input_twice() {
    let error = |ty: TokenStream| error_of(quote!(#[tool] async fn search(&self, a: #ty, b: #ty) -> Result<()> {}));
    assert_eq!(
        error(quote!(Note)),
        "tool `search` takes `Note` twice; write one type that holds both, and derives `Deserialize` and `JsonSchema`"
    );
    assert_eq!(error(quote!(&Handle)), "tool `search` takes `&Handle` twice; remove the second");
}

#[test]
fn mutable_context() {
    assert_eq!(
        error_of(quote!(
            #[tool]
            async fn search(&self, ctx: &mut ToolContext<'_>) -> Result<()> {}
        )),
        "tool `search` must borrow its context; take `&ToolContext<'_>`"
    );
}

/// The error of a tool `search_all` with these parameters: its first line, and the fields of the struct that it shows.
fn error_of_search_all(parameters: TokenStream) -> (String, String) {
    let tool = quote!(#[tool] async fn search_all(#parameters) -> Result<()> {});
    let error = one(expand(quote!(name = "window"), quote!(mod window { #tool })).0);
    let (first, second) = error.split_once('\n').unwrap();
    let shown = second.strip_prefix("the type is `#[derive(Deserialize, JsonSchema)] struct SearchAllInput { ");
    (first.to_owned(), shown.unwrap().strip_suffix(" }`").unwrap().to_owned())
}

fn no_object(ty: &str) -> String {
    format!(
        "tool `search_all` cannot take `{ty}`: the arguments of a call are a JSON object; take `input: SearchAllInput`"
    )
}

#[test]
fn input_that_is_no_object() {
    for (ty, field) in [
        ("String", "String"),
        ("std::string::String", "std::string::String"),
        ("bool", "bool"),
        ("u64", "u64"),
        ("Vec<Note>", "Vec<Note>"),
        ("[u8; 4]", "[u8; 4]"),
        ("(Note, f32)", "(Note, f32)"),
        ("Option<usize>", "Option<usize>"),
        ("&str", "String"),
        ("&[u8]", "Vec<u8>"),
        ("&String", "String"),
        ("&mut i32", "i32"),
    ] {
        let written: TokenStream = ty.parse().unwrap();
        let shown = error_of_search_all(quote!(_text: #written, ctx: &ToolContext<'_>));
        assert_eq!(shown, (no_object(ty), format!("text: {field}")));
    }
}

#[test]
fn inputs_that_may_be_objects() {
    for ty in ["Note", "text::String", "Option<Note>", "BTreeMap<String, u8>", "Box<Note>", "Value", "&Handle"] {
        let ty: TokenStream = ty.parse().unwrap();
        let tool = quote!(#[tool] async fn search(it: #ty) -> Result<()> {});
        assert_eq!(errors(quote!(name = "window"), quote!(mod window { #tool })), [""; 0], "{ty}");
    }
}

#[test]
fn several_inputs_that_are_no_objects_are_one_error() {
    let parameters = quote!(a: i32, note: Note, b: i32, (c, d): (u8, u8), api: &ExtensionApi);
    let fields = "a: i32, note: Note, b: i32, value: (u8, u8)";
    assert_eq!(error_of_search_all(parameters), (no_object("i32"), fields.to_owned()));
}
